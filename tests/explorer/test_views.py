"""The views: attention, stored diagrams, code for the clipboard."""

import json
import shlex
from pathlib import Path

import numpy as np
import pytest

import dotphase as dp
from dotphase.cli.main import _run
from dotphase.errors import InvalidInput
from dotphase.experiments.theory.attention import attention_matrices
from dotphase.explorer import stored_diagrams
from dotphase.explorer.descent import Descent
from dotphase.explorer.diagram import to_page
from dotphase.explorer.point import Point
from dotphase.explorer.snippets import snippets
from dotphase.explorer.subprocesses import JobProcesses
from dotphase.explorer.trainings import Trainings, parse_training

SMALL = {"log2_ensemble": 7, "repetitions": 2, "rtol": 1.0}
TRAINING = {"d": 40, "seeds": 2, "seed": 3, "start": "semantic"}


def test_attention_of_a_known_student(paper):
    """A student equal to the teacher's Q attends as the semantic part of the teacher does."""
    rho = 0.25 * np.ones((2, 1, 1))
    same = dp.Overlaps(q=rho, m=np.zeros((2, 1)), V=rho, theta=rho)
    matrices = attention_matrices(paper, {"semantic": same, "positional": None}, sentence=5)
    for kind in ("mean", "sample"):
        teacher, student = matrices[kind]["teacher"], matrices[kind]["semantic"]
        np.testing.assert_allclose(
            teacher, 0.7 * student + 0.3 * np.asarray([[0.6, 0.4], [0.4, 0.6]]), atol=1e-12
        )
        np.testing.assert_allclose(student.sum(axis=1), 1.0)
        assert "positional" not in matrices[kind]
    again = attention_matrices(paper, {"semantic": same}, sentence=6)
    assert not np.allclose(again["sample"]["teacher"], matrices["sample"]["teacher"])


def test_attention_of_a_student_with_two_columns():
    """A second column of zeros changes nothing but what is drawn."""
    model = dp.positional_semantic(student_rank=2)
    one = np.diag([0.25, 0.0])[None].repeat(2, axis=0)
    student = dp.Overlaps(q=one, m=np.zeros((2, 2)), V=one, theta=one[:, :, :1])
    matrices = attention_matrices(model, {"mixed": student}, sentence=5)
    rho = 0.25 * np.ones((2, 1, 1))
    same = dp.Overlaps(q=rho, m=np.zeros((2, 1)), V=rho, theta=rho)
    expected = attention_matrices(dp.positional_semantic(), {"mixed": same}, sentence=5)
    for kind in ("mean", "sample"):
        np.testing.assert_allclose(matrices[kind]["mixed"], expected[kind]["mixed"], atol=1e-12)


def test_attention_of_a_student_that_knows_positions_only(paper):
    small = 1e-12 * np.ones((2, 1, 1))
    m = np.asarray([[0.5], [-0.5]])
    student = dp.Overlaps(q=small, m=m, V=small, theta=0 * small)
    matrices = attention_matrices(paper, {"positional": student}, sentence=0)
    weight = np.exp(0.25) / (np.exp(0.25) + np.exp(-0.25))
    expected = [[weight, 1 - weight], [1 - weight, weight]]
    np.testing.assert_allclose(matrices["mean"]["positional"], expected, atol=1e-5)


@pytest.mark.parametrize("mixing", ["standard", "other"])
def test_shipped_diagrams(mixing):
    point = Point(mixing=mixing)
    dataset = stored_diagrams.load(point)
    assert dataset is not None
    np.testing.assert_allclose(dataset["alpha"], stored_diagrams.ALPHAS)
    np.testing.assert_allclose(dataset["omega"], stored_diagrams.OMEGAS)
    value = to_page(dataset)
    assert np.shape(value["loss_difference"]) == (25, 25)
    i, j = 12, 12  # omega = .3, alpha = 1.3: far from where either branch ends
    model = point.replace(omega=0.3).model()
    pair = [dp.solve(model, 1.3, name, log2_points=14) for name in ("semantic", "positional")]
    for solution in pair:
        expected = solution.stability.kind if solution.on_branch else "missing"
        assert value["kind"][solution.branch][i][j] == expected
    semantic, positional = pair
    assert semantic.is_minimum
    if positional.is_minimum:
        gap = semantic.train_loss - positional.train_loss
    else:  # missing: a descent from the positional start has not come to the semantic minimum
        gap = float(dataset["reached_difference"].isel(omega=i, alpha=j))
        assert -0.1 * semantic.train_loss < gap < 0
    assert value["loss_difference"][i][j] == pytest.approx(gap, abs=2e-5)
    has_difference = np.isfinite(np.asarray(value["loss_difference"], float))
    kinds = np.asarray([value["kind"][name] for name in ("semantic", "positional")])
    np.testing.assert_array_equal(has_difference, ~np.any(kinds == "saddle", axis=0))


def test_a_diagram_is_stored_in_the_cache_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    point, other = Point(sigma=0.6), Point(sigma=0.7)
    assert stored_diagrams.load(point) is None
    dataset = stored_diagrams.load(Point())
    stored_diagrams.store(point, dataset)
    assert stored_diagrams.load(point).equals(dataset)
    assert stored_diagrams.load(other) is None
    stored_diagrams.cache_entry(point).path.write_bytes(b"damaged")
    assert stored_diagrams.load(point) is None


def test_a_user_without_a_home_has_the_diagrams_that_ship(monkeypatch):
    def nobody():
        raise RuntimeError("no home")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", nobody)
    assert stored_diagrams.load(Point(sigma=0.6)) is None
    dataset = stored_diagrams.load(Point())
    stored_diagrams.store(Point(sigma=0.6), dataset)
    assert stored_diagrams.load(Point(sigma=0.6)) is None


@pytest.mark.parametrize("point", [Point(), Point(alpha=1.8, mixing="0.7,0.4")])
def test_every_view_as_code(point):
    views = snippets(point, Descent(point), 4, TRAINING, 4, "AABBCCDDEE")
    expected = {"numbers", "diagram", "curves", "landscape", "attention", "train", "histogram"}
    assert set(views) == expected | {"learn"}
    for name, view in views.items():
        compile(view["python"], name, "exec")
    assert f"--alpha {point.alpha}" in views["numbers"]["command"]
    assert ("A.json" in views["numbers"]["command"]) == (point["mixing"] == "0.7,0.4")


def test_code_of_other_students_and_of_models_of_ones_own(tmp_path):
    wide = snippets(Point(student_rank=2), None, 4, TRAINING, 4, "")
    assert "learn" not in wide and "--branch mixed" in wide["numbers"]["command"]
    assert "student_rank=2" in wide["numbers"]["python"]
    assert "--student-rank 2" in wide["train"]["command"]
    file = tmp_path / "models.py"
    file.write_text("import dotphase as dp\ndef mine(omega: float = 0.3):\n"
                    "    return dp.positional_semantic(omega=omega)\n")  # fmt: skip
    own = snippets(Point(reference=f"{file}:mine", omega=0.2), None, 4, TRAINING, 4, "")
    assert f"--model {file}:mine --set omega=0.2" in own["numbers"]["command"]
    scope = {}
    exec(own["train"]["python"].partition("print")[0], scope)
    assert float(scope["model"].teacher.omega) == 0.2
    for view in (*wide.values(), *own.values()):
        compile(view["python"], "view", "exec")


def test_code_of_a_view_gives_its_numbers(capsys):
    point = Point(alpha=2.0, mixing="0.7,0.4")
    code = snippets(point, None, 1, TRAINING, 0, "")["train"]["python"]
    exec(compile(code, "train", "exec"), {})
    model = Point(mixing="0.7,0.4").model()
    runs = dp.train(model, 2.0, **TRAINING)
    printed = capsys.readouterr().out
    assert " ".join(str(runs).split()[:6]) in " ".join(printed.split())


def test_code_of_a_descent_gives_its_numbers(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dotphase.explorer.snippets.STAGES", (SMALL,))
    descent = Descent(Point(alpha=1.0), "random", steps=4, d=60)
    view = snippets(descent.point, descent, 2, TRAINING, 0, "")["learn"]
    exec(compile(view["python"], "learn", "exec"), {})
    expected = dp.dynamics(Point().model(), 1.0, descent.start(), lr=8.0, steps=4, **SMALL)
    assert str(expected).splitlines()[:-1] == capsys.readouterr().out.splitlines()[:-1]
    assert (tmp_path / "learning.png").is_file()
    assert _run([*shlex.split(view["command"])[1:], "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    np.testing.assert_allclose(printed["theta"], expected.theta, rtol=1e-6)


@pytest.mark.parametrize(
    "query", [{"d": "5"}, {"d": "100000"}, {"seeds": "0"}, {"start": "x"}, {"seed": "-1"}]
)
def test_trainings_are_bounded(query):
    with pytest.raises(InvalidInput, match=next(iter(query))):
        parse_training(query, Point())


def test_unknown_trainings_are_refused():
    with pytest.raises(InvalidInput, match="job"):
        Trainings(JobProcesses()).get("nothing")
