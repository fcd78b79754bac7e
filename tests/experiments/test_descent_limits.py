"""Ends of gradient descent as a curve."""

from types import SimpleNamespace

import numpy as np
import pytest

import dotphase as dp
from dotphase.experiments.dynamics.descent_limits import _too_large, end_of

#: The size of the ensembles that other tests compile as well.
SMALL = {"log2_ensemble": 9, "repetitions": 2}


@pytest.fixture(scope="module")
def ends():
    model = dp.positional_semantic()
    return dp.curve(model, [2.0, 0.5], theory="dynamics", lr=6.0, steps=63, **SMALL)


def test_ends_are_a_curve_like_that_of_state_evolution(ends):
    assert ends["train_loss"].dims == ("branch", "alpha")
    assert ends["branch"].values.tolist() == ["semantic", "positional"]
    assert ends["alpha"].values.tolist() == [2.0, 0.5]
    assert bool(ends["on_branch"].sel(branch="semantic").all())
    assert ends["found"].sel(branch="semantic").values.tolist() == ["semantic", "semantic"]
    assert ends.attrs["theory"] == "dynamics" and int(ends["iterations"][0, 0]) == 63
    assert np.isfinite(ends["linear_test_error"]) and "alpha_c" in ends


def test_the_end_is_the_minimum_where_state_evolution_is_trusted(ends):
    end = ends.sel(branch="semantic", alpha=2.0)
    assert float(end["theta"]) == pytest.approx(0.1581, rel=0.03)
    assert float(end["train_loss"]) == pytest.approx(0.003595, rel=0.03)


def test_there_is_an_end_where_state_evolution_has_no_branch(ends):
    """At alpha = .5 there is no semantic minimum of replica-symmetric theory."""
    assert 0.05 < float(ends["theta"].sel(branch="semantic", alpha=0.5)) < 0.07
    assert bool(ends["trusted"].sel(branch="semantic", alpha=0.5))


def test_a_limit_is_extrapolated_with_all_of_the_rest_as_error():
    assert end_of(1.0, 0.5, 0.25) == pytest.approx((0.0, 0.25))  # halves when time doubles
    assert end_of(3.0, 2.0, 2.0) == (2.0, 0.0)
    assert end_of(1.0, 2.0, 1.5) == (1.5, 0.5)  # back and forth: no law
    assert end_of(1.0, 2.0, 3.0) == (3.0, 1.0)  # as fast as ever
    value, error = end_of(1.0, np.nan, 2.0)
    assert value == 2.0 and np.isnan(error)


def test_steps_that_let_the_loss_rise_are_too_large():
    def path(loss, momentum=0.0, diverged=False):
        return SimpleNamespace(train_loss=np.asarray(loss), momentum=momentum, diverged=diverged)

    assert not _too_large(path([3.0, 2.0, 1.0, 1.001]))
    assert _too_large(path([3.0, 2.0, 2.5]))
    assert not _too_large(path([3.0, 2.0, 2.5], momentum=0.9))
    assert _too_large(path([3.0, 2.0, 1.0], diverged=True))
    assert _too_large(path([3.0, np.nan, np.nan]))


def test_a_descent_is_followed_until_nothing_moves():
    rule = {"theory": "dynamics", "start": "semantic", "lr": 6.0, **SMALL}
    end = dp.curve(dp.positional_semantic(), [2.0], **rule)
    assert end["branch"].values.tolist() == ["semantic"]
    assert bool(end["converged"].all()) and int(end["iterations"][0, 0]) in (63, 127, 255)
    assert float(end["gradient_norm"][0, 0]) < 1e-4


def test_what_cannot_be_is_refused():
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
