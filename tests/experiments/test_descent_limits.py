"""Limits of gradient descent as a curve."""

from types import SimpleNamespace

import numpy as np
import pytest

import dotphase as dp
from dotphase.experiments.dynamics.descent_limits import extrapolate, steps_too_large

#: The size of the ensembles that other tests compile as well.
SMALL = {"log2_ensemble": 9, "repetitions": 2}


@pytest.fixture(scope="module")
def limits():
    model = dp.positional_semantic()
    return dp.curve(model, [2.0, 0.5], theory="dynamics", lr=6.0, steps=63, **SMALL)


def test_limits_are_a_curve_like_that_of_state_evolution(limits):
    assert limits["train_loss"].dims == ("branch", "alpha")
    assert limits["branch"].values.tolist() == ["semantic", "positional"]
    assert limits["alpha"].values.tolist() == [2.0, 0.5]
    assert bool(limits["on_branch"].sel(branch="semantic").all())
    assert limits["found"].sel(branch="semantic").values.tolist() == ["semantic", "semantic"]
    assert limits.attrs["theory"] == "dynamics" and int(limits["iterations"][0, 0]) == 63
    assert np.isfinite(limits["linear_test_error"]) and "alpha_c" in limits


def test_the_limit_is_the_minimum_where_state_evolution_is_trusted(limits):
    limit = limits.sel(branch="semantic", alpha=2.0)
    assert float(limit["theta"]) == pytest.approx(0.1581, rel=0.03)
    assert float(limit["train_loss"]) == pytest.approx(0.003595, rel=0.03)


def test_there_is_a_limit_where_state_evolution_has_no_branch(limits):
    """At alpha = .5 there is no semantic minimum of replica-symmetric theory."""
    assert 0.05 < float(limits["theta"].sel(branch="semantic", alpha=0.5)) < 0.07
    assert bool(limits["trusted"].sel(branch="semantic", alpha=0.5))


def test_the_error_contains_the_extrapolation():
    assert extrapolate(1.0, 0.5, 0.25) == pytest.approx((0.0, 0.25))  # halves when time doubles
    assert extrapolate(3.0, 2.0, 2.0) == (2.0, 0.0)
    assert extrapolate(1.0, 2.0, 1.5) == (1.5, 0.5)  # back and forth
    assert extrapolate(1.0, 2.0, 3.0) == (3.0, 1.0)  # as fast as ever
    value, error = extrapolate(1.0, np.nan, 2.0)
    assert value == 2.0 and np.isnan(error)


def test_steps_that_let_the_loss_rise_aresteps_too_large():
    def path(loss, momentum=0.0, diverged=False):
        return SimpleNamespace(train_loss=np.asarray(loss), momentum=momentum, diverged=diverged)

    assert not steps_too_large(path([3.0, 2.0, 1.0, 1.001]))
    assert steps_too_large(path([3.0, 2.0, 2.5]))
    assert not steps_too_large(path([3.0, 2.0, 2.5], momentum=0.9))
    assert steps_too_large(path([3.0, 2.0, 1.0], diverged=True))
    assert steps_too_large(path([3.0, np.nan, np.nan]))


def test_a_descent_takes_steps_until_it_has_settled():
    rule = {"theory": "dynamics", "start": "semantic", "lr": 6.0, **SMALL}
    limit = dp.curve(dp.positional_semantic(), [2.0], **rule)
    assert limit["branch"].values.tolist() == ["semantic"]
    assert bool(limit["converged"].all()) and int(limit["iterations"][0, 0]) in (63, 127, 255)
    assert float(limit["gradient_norm"][0, 0]) < 1e-4


def test_invalid_input_is_refused():
    model = dp.positional_semantic()
    with pytest.raises(dp.InvalidInput, match="theory = 'magic': must be one of"):
        dp.curve(model, [1.0], theory="magic")
    for branches in (3, [10**5000]):
        with pytest.raises(dp.InvalidInput, match=r"branches = .*different names of"):
            dp.curve(model, [1.0], branches)
    with pytest.raises(dp.InvalidInput, match=r"start = .*nowhere.*different names of"):
        dp.curve(model, [1.0], theory="dynamics", start="nowhere")
    with pytest.raises(TypeError, match="log2_points"):
        dp.curve(model, [1.0], theory="dynamics", log2_points=12)
