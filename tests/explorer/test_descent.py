"""Watching it learn: what is asked, where it begins, and what the processes say."""

import json
import threading

import numpy as np
import pytest

import dotphase as dp
from dotphase.errors import InvalidInput
from dotphase.experiments.theory.attention import attention_along, attention_matrices
from dotphase.explorer import descent as descent_module
from dotphase.explorer import worker
from dotphase.explorer.descent import Descent, parse_descent, parse_runs, start_theory
from dotphase.explorer.point import Point
from dotphase.explorer.shared_jobs import SharedJobs
from dotphase.explorer.subprocesses import JobProcesses
from dotphase.finite_d.initialization import start_components

FIRST = {"log2_ensemble": 6, "repetitions": 2, "rtol": None}
FINAL = {"log2_ensemble": 7, "repetitions": 3, "rtol": 1.0}


def test_settings_from_a_query_and_back():
    query = {"initialization": "random", "lr": "4", "dimension": "100"}
    settings = parse_descent(query, Point(alpha=0.5))
    assert settings == Descent(Point(alpha=0.5), "random", lr=4.0, d=100)
    assert Descent.from_dict(json.loads(json.dumps(settings.to_dict()))) == settings
    assert parse_runs({}) == descent_module.DEFAULT_RUNS


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("lr", "0"), ("lr", "nan"), ("lr", "1000"), ("momentum", "1"), ("steps", "0"),
        ("steps", "100000"), ("scale", "0"), ("dimension", "10"), ("dimension", "1e3"),
        ("initialization", "mixed"), ("initialization", "<b>"),
    ],
)  # fmt: skip
def test_invalid_settings_are_refused_by_name(name, text):
    with pytest.raises(InvalidInput) as caught:
        parse_descent({name: text}, Point())
    assert caught.value.field == name
    with pytest.raises(InvalidInput, match="one column"):
        parse_descent({}, Point(student_rank=2))
    with pytest.raises(InvalidInput, match="runs"):
        parse_runs({"runs": "9"})


def test_a_random_start_has_the_overlaps_of_its_dimension(paper):
    settings = Descent(initialization="random", scale=0.4, d=400)
    parts = settings.start().components(paper)
    assert parts.theta == pytest.approx(0.02)
    assert parts.m == pytest.approx(np.asarray([[0.02, -0.02]]))
    assert parts.orthogonal == pytest.approx(0.16)


def test_a_positional_start_is_that_of_the_theory(paper):
    components, expected = (
        Descent(initialization="positional").start().components(paper),
        start_components(paper, "positional"),
    )
    for actual, wanted in zip(components, expected, strict=True):
        np.testing.assert_allclose(actual, wanted, atol=1e-12)


def test_the_same_theory_has_the_same_name():
    one, other = Descent(d=100, scale=0.1), Descent(d=700)
    assert one.in_the_limit() == other.in_the_limit()
    far = [Descent(initialization="random", d=d) for d in (100, 700)]
    assert far[0].in_the_limit() != far[1].in_the_limit()


def test_attention_along_a_path_is_attention_at_every_step(paper):
    theta = np.asarray([[0.25, 0.25], [0.1, 0.1]])
    m, q = np.asarray([[0.0, 0.0], [0.3, -0.3]]), np.asarray([[0.25, 0.25], [0.1, 0.1]])
    matrices = attention_along(paper, theta, m, q, sentences=3)
    for step in range(2):
        wide = theta[step][:, None, None]
        overlaps = dp.Overlaps(q[step][:, None, None], m[step][:, None], wide, wide)
        expected = attention_matrices(paper, {"student": overlaps}, sentence=2)
        student = matrices["student"]
        np.testing.assert_allclose(student["sample"][2, step], expected["sample"]["student"])
        np.testing.assert_allclose(student["mean"][step], expected["mean"]["student"], atol=5e-3)
        np.testing.assert_allclose(matrices["teacher"]["sample"][2], expected["sample"]["teacher"])
        np.testing.assert_allclose(
            matrices["teacher"]["mean"], expected["mean"]["teacher"], atol=5e-3
        )


@pytest.fixture
def messages(monkeypatch):
    """Messages of a worker."""
    monkeypatch.setattr(descent_module, "STAGES", (FIRST, FINAL))
    return []


def send_to(messages):
    return lambda **message: messages.append(message)


def test_theory_comes_coarse_first_and_is_that_of_dynamics(messages, paper):
    settings = Descent(Point(alpha=1.0), steps=4)
    worker.dynamics(send_to(messages), settings.to_dict())
    values = [line["value"] for line in messages if "value" in line]
    assert [value["stage"] for value in values] == [0, 1]
    shares = [line["progress"] for line in messages if "progress" in line]
    assert shares == sorted(shares) and shares[-1] == 1.0
    known = dp.dynamics(paper, 1.0, "semantic", lr=8.0, steps=4, **FINAL)
    for name in ("train_loss", "test_error", "theta", "m", "q"):
        np.testing.assert_array_equal(values[1][name], getattr(known, name))
        np.testing.assert_array_equal(values[1]["stderr"][name], known.stderr[name])
    # At the teacher's weights the student attends as the semantic part of the teacher does.
    seen = values[1]["attention"]
    mixed = 0.7 * seen["student"]["sample"][:, 0] + 0.3 * np.asarray([[0.6, 0.4], [0.4, 0.6]])
    np.testing.assert_allclose(mixed, seen["teacher"]["sample"], atol=2e-4)


def test_theory_reports_the_step_of_divergence(messages):
    settings = Descent(Point(alpha=1.0, sigma=1.2, ridge=0.1), lr=40.0, steps=4)
    worker.dynamics(send_to(messages), settings.to_dict())
    value = messages[-1]["value"]
    assert value["diverged_at"] is not None
    assert value["message"].startswith(f"diverged at step {value['diverged_at']}")
    assert value["trusted_until"] < value["diverged_at"]


def test_runs_are_those_of_train(messages, paper):
    settings = Descent(Point(alpha=1.0), "positional", momentum=0.5, steps=4, d=60)
    worker.descend(send_to(messages), settings.to_dict(), seeds=2)
    path = messages[-1]["path"]
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


def test_processes_that_no_window_watches_are_killed():
    processes = JobProcesses()
    jobs = SharedJobs(4, lambda descent, job: start_theory(processes, descent, job))
    first = jobs.watch(Descent(), "window")
    assert processes.count("dynamics") == 1
    jobs.watch(Descent(lr=4.0), "window")
    assert first.stop.is_set() and processes.count("dynamics") == 1
    third = jobs.watch(Descent(lr=2.0), "another")
    refused = jobs.watch(Descent(lr=1.0), "a third")
    assert processes.count("dynamics") == 2
    assert third.error is None and "try again" in refused.error
    for window in ("window", "another"):
        jobs.leave(window)
    assert processes.count("dynamics") == 0


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        ({"descent": {}}, "KeyError: 'point'"),
        ({"descent": {"point": {"reference": "no"}}}, "model ="),
    ],
)
def test_the_page_reads_why_a_job_failed(job, expected):
    errors, messages, ended = [], [], threading.Event()

    def on_exit(error):
        errors.append(error)
        ended.set()

    processes = JobProcesses()
    process = processes.start({"task": "dynamics", **job}, messages.append, on_exit).process
    assert ended.wait(60)
    assert process.returncode is not None and processes.count("dynamics") == 0
    assert errors[0].startswith(expected) and messages == [{"steps": 0}]


def test_a_process_that_dies_ends_its_job():
    errors, ended = [], threading.Event()
    processes = JobProcesses()
    descent = {"task": "dynamics", "descent": Descent().to_dict()}
    worker = processes.start(
        descent, lambda _: worker.kill(), lambda error: (errors.append(error), ended.set())
    )
    assert ended.wait(60)
    assert errors == ["its process ended early (killed by SIGKILL)"]
