"""Critical points against brute force and against the reference values."""

import math

import numpy as np
import pytest

import dotphase as dp


@pytest.fixture(scope="module")
def found():
    return dp.critical(dp.positional_semantic(0.3), alpha_min=0.4, alpha_max=2.0, log2_points=13)


def test_losses_are_equal_at_alpha_c_and_cross_there(found, paper):
    assert found.found and found.crosses
    semantic, positional = found.semantic, found.positional
    assert semantic.alpha == positional.alpha == pytest.approx(found.alpha_c, rel=1e-3)
    assert abs(semantic.free_energy / positional.free_energy - 1) < 1e-4
    for factor, sign in ((0.9, 1), (1.1, -1)):
        pair = [
            dp.solve(paper, factor * found.alpha_c, name, log2_points=13)
            for name in ("semantic", "positional")
        ]
        assert np.sign(pair[0].train_loss - pair[1].train_loss) == sign


def test_values_at_omega_three_tenths(found):
    """alpha_c 1.2515 and alpha_l 1.4925 on many more points."""
    for value, error, expected in [
        (found.alpha_c, found.alpha_c_stderr, 1.2515),
        (found.alpha_l, found.alpha_l_stderr, 1.4925),
    ]:
        assert 0 < error < 0.02
        assert abs(value - expected) < 4 * error + 1e-3
    assert found.trusted


def test_test_error_meets_the_linear_layer_at_alpha_l(found, paper):
    solution = dp.solve(paper, found.alpha_l, "semantic", log2_points=13)
    np.testing.assert_allclose(solution.test_error, found.linear_test_error, rtol=2e-3)


def test_slope_of_the_training_loss_is_exact(paper):
    low, here, high = (
        dp.solve(paper, alpha, "semantic", log2_points=13) for alpha in (1.7, 1.8, 1.9)
    )
    slope = (high.train_loss - low.train_loss) / 0.2
    np.testing.assert_allclose(here.loss_slope, slope, rtol=1e-2)


def test_few_points_still_give_both():
    result = dp.critical(
        dp.positional_semantic(), alpha_min=0.8, alpha_max=2.0, log2_points=12, seed=3
    )
    assert result.found
    assert abs(result.alpha_l - 1.4925) < 4 * result.alpha_l_stderr + 5e-3


def test_without_a_transition_alpha_c_is_nan_and_the_message_says_why():
    result = dp.critical(dp.positional_semantic(1.0), log2_points=12, alpha_min=0.8, alpha_max=2.0)
    assert not result.found and math.isnan(result.alpha_c) and not result.trusted
    assert "positional" in result.message


@pytest.mark.parametrize(
    ("arguments", "field"),
    [({"alpha_min": 0}, "alpha_min"), ({"alpha_min": 2, "alpha_max": 1}, "alpha_max"),
     ({"log2_points": 3}, "log2_points"), ({"log2_points": None}, "log2_points"),
     ({"seed": -1}, "seed")],
)  # fmt: skip
def test_bad_ranges_are_refused(paper, arguments, field):
    with pytest.raises(ValueError, match=f"^{field} = "):
        dp.critical(paper, **arguments)


def test_where_the_branches_stop_being_minima_and_end(found):
    """The semantic branch below alpha_c; the positional one of two tokens stays a minimum."""
    loss, end = found.stability_loss["semantic"], found.branch_end["semantic"]
    assert 0.75 < loss < 0.87
    assert 0.6 < end < loss
    assert found.limits["semantic"].end_kind == "merges with uninformed"
    assert 0 < found.limits["semantic"].stability_loss_stderr < 0.05
    assert 0 < found.limits["semantic"].end_stderr < 0.05
    assert math.isnan(found.stability_loss["positional"])
    json = found.to_dict()
    assert json["stability_loss"]["semantic"] == loss
    assert json["branch_end"]["semantic"] == end
    assert {"semantic", "positional"} <= set(json["branch_end_stderr"])


def test_limits_can_be_left_out(paper):
    assert dp.critical(paper, alpha_min=0.8, alpha_max=2, log2_points=12, limits=False).limits == {}


def test_every_transition_is_named_and_one_that_is_continuous_is_where_a_multiplier_is_one(paper):
    """Few sentences: the positional minimum grows out of the uninformed one."""
    found = dp.critical(paper, alpha_min=0.05, alpha_max=0.1, log2_points=12, limits=False)
    (change,) = found.transitions
    assert (change.before, change.after, change.kind) == ("uninformed", "positional", "continuous")
    assert found.lowest == ("uninformed", "positional")
    parent = dp.solve(paper, change.alpha, "uninformed", log2_points=12)
    slope = 10.0  # of the multiplier in alpha
    assert abs(parent.stability.multipliers["m"] - 1) < 0.01 + 4 * slope * change.stderr
    # Neither is aligned with the teacher: there is no alpha_c, and the message says why.
    assert math.isnan(found.alpha_c) and "never to one aligned with the teacher" in found.message
    assert found.branches["semantic"] == "not found" and not found.crosses
    assert "semantic branch   not found" in str(found)


def test_a_single_lowest_minimum_is_named():
    model = dp.positional_semantic(0.0)
    found = dp.critical(model, alpha_min=2.0, alpha_max=2.5, log2_points=12, limits=False)
    assert found.transitions == () and found.lowest == ("semantic",)
    assert "the semantic branch is the lowest minimum at every alpha" in found.message
    assert "below that of the linear layer already at alpha = " in found.message
