"""Derivatives of solutions against differences of solutions on the same points."""

import numpy as np
import pytest

import dotphase as dp
from dotphase.model.parameter_values import parameter_names, with_parameter

LOG2_POINTS = 14
#: Width of the differences.
STEPS = {"alpha": 0.05, "ridge": 0.0005, "omega": 0.01, "sigma": 0.01}


@pytest.fixture(scope="module")
def semantic(paper):
    return dp.solve(paper, 2.0, log2_points=LOG2_POINTS)


def difference(solution, parameter):
    """Values and errors of a central difference of two solves."""
    step, pair = STEPS[parameter], []
    for sign in (1, -1):
        model, alpha = solution.model, solution.alpha
        if parameter == "alpha":
            alpha += sign * step
        else:
            current = {"ridge": 0.01, "omega": 0.3, "sigma": 0.5}[parameter]
            model = with_parameter(model, parameter, current + sign * step)
        pair.append(dp.solve(model, alpha, solution.branch, log2_points=LOG2_POINTS))
    names = ("train_loss", "test_error", "q", "V", "theta")
    values = {name: (pair[0].value(name) - pair[1].value(name)) / (2 * step) for name in names}
    samples = {name: (pair[0].samples[name] - pair[1].samples[name]) / (2 * step) for name in names}
    return values, {name: np.std(rows, ddof=1) / np.sqrt(8) for name, rows in samples.items()}


@pytest.mark.parametrize("parameter", list(STEPS))
def test_derivatives_agree_with_differences_of_solves(semantic, parameter):
    found = semantic.derivative(parameter)
    values, errors = difference(semantic, parameter)
    for name, expected in values.items():
        error = np.hypot(found.stderr[name], errors[name])
        # The differences have an error of second order in their step.
        assert abs(found.value[name] - expected) < 4 * error + 0.005 * abs(expected), name
    assert found.value["m"] == 0


def test_errors_cover_the_spread_over_seeds(paper):
    rows = [
        dp.solve(paper, 2.0, log2_points=12, seed=seed).derivative("alpha") for seed in range(6)
    ]
    values = [row.value["theta"] for row in rows]
    claimed = np.sqrt(np.mean([row.stderr["theta"] ** 2 for row in rows]))
    assert 0.3 < np.std(values, ddof=1) / claimed < 2.5
    assert claimed < 0.03 * abs(np.mean(values))


def test_the_loss_slope_is_the_derivative_by_alpha(semantic):
    found = semantic.derivative("alpha")
    assert found.train_loss == pytest.approx(semantic.loss_slope, rel=1e-3)
    assert found.test_error == found.value["test_error"]


def test_overlaps_and_norms_have_the_same_derivatives(semantic):
    found = semantic.derivative("sigma")
    assert float(found.overlaps.theta[0, 0, 0]) == pytest.approx(found.value["theta"], rel=1e-6)
    assert found.overlaps.m.shape == semantic.overlaps.m.shape


def test_unknown_parameters_and_missing_fixed_points_are_refused(paper, semantic):
    with pytest.raises(dp.InvalidInput, match=r"^parameter = 'beta'.*alpha, ridge, sigma, omega"):
        semantic.derivative("beta")
    zero = dp.solve(dp.positional_semantic(ridge=100.0), 0.1, "uninformed", log2_points=12)
    with pytest.raises(dp.InvalidInput, match="nonzero student"):
        zero.derivative("alpha")


def test_numbers_of_a_model_by_name(paper):
    assert parameter_names(paper) == ["ridge", "sigma", "omega"]
    changed = with_parameter(paper, "omega", 0.7)
    assert float(changed.teacher.omega) == 0.7 and float(paper.teacher.omega) == 0.3
    uneven = dp.Model(paper.teacher, paper.student, length=2, sigma=[0.5, 1.0], ridge=0.01)
    assert with_parameter(uneven, "sigma", 1.0).sigma.tolist() == [1.0, 2.0]
