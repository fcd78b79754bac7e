"""Watching it learn: what is asked, where it begins, and what the processes say."""

import json
import threading

import numpy as np
import pytest

import dotphase as dp
from dotphase.errors import InvalidInput
from dotphase.experiments.theory.attention import attention_along, attention_matrices
from dotphase.explorer import lesson as lessons
from dotphase.explorer import worker
from dotphase.explorer.lesson import Lesson, begin_theory, in_the_limit, read_lesson, read_runs
from dotphase.explorer.point import Point
from dotphase.explorer.shared_jobs import Shelf
from dotphase.explorer.subprocesses import Children
from dotphase.finite_d.initialization import start_components

FIRST = {"log2_ensemble": 6, "repetitions": 2, "rtol": None}
FINAL = {"log2_ensemble": 7, "repetitions": 3, "rtol": 1.0}


def test_a_lesson_from_a_query_and_back():
    query = {"begin": "random", "lr": "4", "dimension": "100"}
    asked = read_lesson(query, Point(alpha=0.5))
    assert asked == Lesson(Point(alpha=0.5), "random", lr=4.0, d=100)
    assert Lesson.of(json.loads(json.dumps(asked.to_dict()))) == asked
    assert read_runs({}) == lessons.REPEATS


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("lr", "0"), ("lr", "nan"), ("lr", "1000"), ("momentum", "1"), ("steps", "0"),
        ("steps", "100000"), ("scale", "0"), ("dimension", "10"), ("dimension", "1e3"),
        ("begin", "mixed"), ("begin", "<b>"),
    ],
)  # fmt: skip
def test_what_cannot_be_watched_is_refused_by_name(name, text):
    with pytest.raises(InvalidInput) as caught:
        read_lesson({name: text}, Point())
    assert caught.value.field == name
    with pytest.raises(InvalidInput, match="one column"):
        read_lesson({}, Point(student_rank=2))
    with pytest.raises(InvalidInput, match="repeats"):
        read_runs({"repeats": "9"})


def test_a_random_start_has_the_overlaps_of_its_dimension(paper):
    asked = Lesson(begin="random", scale=0.4, d=400)
    parts = asked.start().parts(paper)
    assert parts.theta == pytest.approx(0.02)
    assert parts.m == pytest.approx(np.asarray([[0.02, -0.02]]))
    assert parts.rest == pytest.approx(0.16)


def test_a_positional_start_is_that_of_the_theory(paper):
    found, known = (
        Lesson(begin="positional").start().parts(paper),
        start_components(paper, "positional"),
    )
    for one, other in zip(found, known, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)


def test_the_same_theory_has_the_same_name():
    one, other = Lesson(d=100, scale=0.1), Lesson(d=700)
    assert in_the_limit(one) == in_the_limit(other)
    far = [Lesson(begin="random", d=d) for d in (100, 700)]
    assert in_the_limit(far[0]) != in_the_limit(far[1])


def test_attention_along_a_path_is_attention_at_every_step(paper):
    theta = np.asarray([[0.25, 0.25], [0.1, 0.1]])
    m, q = np.asarray([[0.0, 0.0], [0.3, -0.3]]), np.asarray([[0.25, 0.25], [0.1, 0.1]])
    found = attention_along(paper, theta, m, q, sentences=3)
    for step in range(2):
        wide = theta[step][:, None, None]
        here = dp.Overlaps(q[step][:, None, None], m[step][:, None], wide, wide)
        known = attention_matrices(paper, {"student": here}, sentence=2)
        student = found["student"]
        np.testing.assert_allclose(student["sample"][2, step], known["sample"]["student"])
        np.testing.assert_allclose(student["mean"][step], known["mean"]["student"], atol=5e-3)
        np.testing.assert_allclose(found["teacher"]["sample"][2], known["sample"]["teacher"])
        np.testing.assert_allclose(found["teacher"]["mean"], known["mean"]["teacher"], atol=5e-3)


@pytest.fixture
def said(monkeypatch):
    """What a process would say."""
    lines = []
    monkeypatch.setattr(worker, "tell", lambda **what: lines.append(what))
    monkeypatch.setattr(lessons, "STAGES", (FIRST, FINAL))
    return lines


def test_theory_is_told_coarse_first_and_is_that_of_dynamics(said, paper):
    asked = Lesson(Point(alpha=1.0), steps=4)
    worker.theory(asked.to_dict())
    values = [line["value"] for line in said if "value" in line]
    assert [value["stage"] for value in values] == [0, 1]
    shares = [line["progress"] for line in said if "progress" in line]
    assert shares == sorted(shares) and shares[-1] == 1.0
    known = dp.dynamics(paper, 1.0, "semantic", lr=8.0, steps=4, **FINAL)
    for name in ("train_loss", "test_error", "theta", "m", "q"):
        np.testing.assert_array_equal(values[1][name], getattr(known, name))
        np.testing.assert_array_equal(values[1]["stderr"][name], known.stderr[name])
    # At the teacher's weights the student attends as the semantic part of the teacher does.
    seen = values[1]["attention"]
    mixed = 0.7 * seen["student"]["sample"][:, 0] + 0.3 * np.asarray([[0.6, 0.4], [0.4, 0.6]])
    np.testing.assert_allclose(mixed, seen["teacher"]["sample"], atol=2e-4)


def test_theory_that_diverges_says_when(said):
    worker.theory(Lesson(Point(alpha=1.0, sigma=1.2, ridge=0.1), lr=40.0, steps=4).to_dict())
    value = said[-1]["value"]
    assert value["diverged_at"] is not None
    assert value["message"].startswith(f"diverged at step {value['diverged_at']}")
    assert value["trusted_until"] < value["diverged_at"]


def test_runs_are_those_of_train(said, paper):
    asked = Lesson(Point(alpha=1.0), "positional", momentum=0.5, steps=4, d=60)
    worker.descend(asked.to_dict(), seeds=2)
    path = said[-1]["path"]
    known = dp.train(
        paper, 1.0, 60, seeds=2, start=dp.start_from(m=1.0), lr=8.0, steps=4, record=True,
        optimizer="momentum", momentum=0.5,
    )  # fmt: skip
    np.testing.assert_array_equal(path["m"], known.path["m"].values)
    np.testing.assert_allclose(path["m"][:, 0], 1.0)
    # Attention of the first run: at the start m = 1, and what q says beyond that is nothing.
    weight = 1 / (1 + np.exp(-2))
    near = [[weight, 1 - weight], [1 - weight, weight]]
    np.testing.assert_allclose(path["attention"]["student"]["mean"][0], near, atol=0.05)


def test_what_nobody_watches_is_killed():
    children = Children()
    shelf = Shelf(4, lambda asked, growing: begin_theory(children, asked, growing))
    first = shelf.watch(Lesson(), "window")
    assert children.running("theory") == 1
    shelf.watch(Lesson(lr=4.0), "window")
    assert first.stop.is_set() and children.running("theory") == 1
    third = shelf.watch(Lesson(lr=2.0), "another")
    refused = shelf.watch(Lesson(lr=1.0), "a third")
    assert children.running("theory") == 2
    assert third.error is None and "try again" in refused.error
    for window in ("window", "another"):
        shelf.leave(window)
    assert children.running("theory") == 0


def test_a_process_that_dies_is_told():
    told, over = [], threading.Event()

    def end(wrong):
        told.append(wrong)
        over.set()

    children = Children()
    process = children.start({"task": "theory", "lesson": {}}, told.append, end)
    assert over.wait(60)
    assert process.returncode not in (None, 0)
    assert told[-1] == "" and children.running("theory") == 0
    assert {"state": "done"} not in told
