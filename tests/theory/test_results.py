"""Every result of the theory: saved, read again, pickled, copied, compared and printed."""

from __future__ import annotations

from importlib import import_module

import jax
import pytest

import dotphase as dp
from dotphase.storage.results import SAVED_CLASSES, Result
from dotphase.theory.landscape import landscape
from result_checks import assert_is_a_result

FEW = {"log2_points": 12}
NAMES = ("Solution", "Broken", "Complexity", "Critical", "Transition", "Landscape", "BranchEnd",
         "Flow", "BayesOptimal", "Baseline", "Derivative", "Optimum")  # fmt: skip


@pytest.fixture(scope="module")
def results():
    """One result of each class, by its name."""
    model = dp.positional_semantic(omega=0.1)
    critical = dp.critical(dp.positional_semantic(), alpha_min=0.8, alpha_max=2.0, **FEW)
    broken = dp.solve(model, 0.75, "positional", breaking=1, inner=9, **FEW)
    listed = [
        broken.symmetric,
        broken,
        broken.curve,
        critical,
        critical.transition,
        landscape(model, 2.0, [0.0, 0.2], [0.0, 0.1]),
        dp.results.BranchEnd("semantic", "fold", 0.7, 0.01),
        dp.flow.follow(model, 0.1, 0.03, 0.06, [0.0, 10.0]),
        dp.bayes.optimal(model, alpha=0.3),
        dp.baseline(model, alpha=2.0, d=40, seeds=2),
        broken.symmetric.derivative("ridge"),
        dp.results.Optimum("ridge", "test_error", 0.01, 0.001, broken.symmetric),
    ]
    return {type(result).__name__: result for result in listed}


@pytest.mark.parametrize("name", NAMES)
def test_every_result_is_saved_copied_and_printed(results, name, tmp_path):
    assert_is_a_result(results[name], tmp_path)
    assert name in repr(results[name]) and results[name]._repr_html_()


def test_every_saved_class_is_a_result():
    for name, module in SAVED_CLASSES.items():
        assert issubclass(getattr(import_module(module), name), Result), name


def test_datasets_have_names_of_dimensions(results):
    solution, surface = results["Solution"], results["Landscape"]
    dataset = solution.dataset()
    assert dataset["theta"].dims == ("token", "column", "teacher_column")
    assert dataset["m"].dims == ("direction", "column")
    assert float(dataset["train_loss_stderr"]) == solution.stderr["train_loss"]
    assert float(dataset["replicon"]) == solution.stability.replicon
    assert dataset["test_error"].attrs["long_name"] == "test error"
    assert dataset["test_error"].attrs["units"] == "1"
    assert results["Broken"].dataset()["q1"].dims == ("token", "column", "column_2")
    assert surface.dataset()["loss"].dims == ("theta", "m")
    assert surface.dataset()["loss"].sel(m=0.2, theta=0.1) == surface.loss[1, 1]
    end = results["Critical"].limits["semantic"].end
    assert float(results["Critical"].dataset()["semantic_end"]) == pytest.approx(end, nan_ok=True)


def test_a_solution_is_printed_with_its_losses(results):
    solution = results["Solution"]
    start = f"<Solution: positional branch at alpha = 0.75, train_loss = {solution.train_loss:.6g},"
    assert repr(solution).startswith(start)
    assert f"test_error = {solution.test_error:.6g}, " in repr(solution)
    overlaps, stability = solution.overlaps, solution.stability
    assert repr(overlaps).startswith(f"<Overlaps: q = {solution.norms['q']:.6g}, m = ")
    assert repr(stability).startswith(f"<Stability: {stability.described}, ")
    for part, name in ((overlaps, "theta"), (stability, "replicon")):
        assert "\n" not in repr(part) and f">{name}</th>" in part._repr_html_()
    jax.make_jaxpr(lambda x: repr(overlaps._replace(q=x)) and x)(overlaps.q)
