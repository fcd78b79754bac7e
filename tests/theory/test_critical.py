"""Critical points against brute force and against the reference values."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

import dotphase as dp
from dotphase.theory.spinodal import BranchEnd
from dotphase.theory.transitions import (
    Transition,
    _transition,
    beats_linear,
    candidates,
    lowest_minimum,
)


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


def test_no_crossing_is_said_and_is_nan():
    result = dp.critical(dp.positional_semantic(1.0), log2_points=12, alpha_min=0.8, alpha_max=2.0)
    assert not result.found and math.isnan(result.alpha_c) and not result.trusted
    assert "positional" in result.message


def test_end_of_the_semantic_branch(paper):
    end = dp.analysis.branch_end(paper, "semantic", 1.2, 0.4, log2_points=13, accuracy=0.05)
    assert isinstance(end, BranchEnd)
    assert end.outside < end.alpha < end.inside
    assert 0.5 < end.alpha < 0.85
    assert dp.analysis.branch_end(paper, "semantic", 1.6, 1.4, log2_points=12) is None


def test_end_of_trust_comes_before_the_end_of_the_branch(paper):
    end = dp.analysis.branch_end(
        paper, "semantic", 1.5, 0.6, trusted=True, log2_points=14, accuracy=0.05
    )
    assert 0.85 < end.alpha < 1.2


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
    assert 0.55 < end < loss
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
    there = dp.solve(paper, change.alpha, "uninformed", log2_points=12)
    slope = 10.0  # of the multiplier in alpha
    assert abs(there.stability.multipliers["m"] - 1) < 0.01 + 4 * slope * change.stderr
    # Neither knows the teacher: there is no alpha_c, and words say why.
    assert math.isnan(found.alpha_c) and "never to one that knows the teacher" in found.message
    assert found.branches["semantic"] == "not found" and not found.crosses
    assert "semantic branch   not found" in str(found)


def test_one_minimum_everywhere_is_said():
    model = dp.positional_semantic(0.0)
    found = dp.critical(model, alpha_min=2.0, alpha_max=2.5, log2_points=12, limits=False)
    assert found.transitions == () and found.lowest == ("semantic",)
    assert "the semantic branch is the lowest minimum at every alpha" in found.message
    assert "below that of the linear layer already at alpha = " in found.message


class Fake:
    """A solution as the search sees it."""

    def __init__(self, branch, alpha, loss, *, test_error=1.0, minimum=True):
        self.branch, self.alpha, self.free_energy = branch, alpha, loss
        self.test_error, self.is_minimum = test_error, minimum


def test_the_lowest_minimum_is_no_saddle_and_no_copy_of_a_simpler_one():
    saddle = Fake("mixed", 1.0, 0.5, minimum=False)
    copy = Fake("mixed", 1.0, 0.9995)
    simple, other = Fake("positional", 1.0, 1.0), Fake("semantic", 1.0, 1.1)
    assert lowest_minimum([saddle, simple, other]) is simple
    assert lowest_minimum([copy, simple, other]) is simple
    clear = Fake("mixed", 1.0, 0.9)
    assert lowest_minimum([clear, simple, other]) is clear
    assert lowest_minimum([saddle]) is None


def test_a_test_error_that_jumps_past_the_linear_layer_has_the_error_of_the_jump():
    low, high = Fake("positional", 1.0, 1.0, test_error=2.0), Fake("semantic", 2.0, 1.0)
    sides = tuple(SimpleNamespace(alpha=1.5, test_error=error) for error in (2.0, 0.5))
    jump = Transition(1.5, 0.01, "positional", "semantic", "crossing", 0.0, True, "", sides)
    survey = SimpleNamespace(lowest=[low, high])
    place, error, words = beats_linear(None, survey, [jump], 1.0, None)
    assert (place, error) == (1.5, 0.01)
    assert "positional -> semantic at alpha = 1.500 ± 0.010" in words
    place, _, words = beats_linear(None, survey, [jump], math.nan, None)
    assert math.isnan(place) and "no linear layer" in words


def test_students_of_rank_two_can_be_mixed_and_those_of_rank_one_not(paper):
    assert "mixed" not in candidates(paper)
    assert "mixed" in candidates(dp.positional_semantic(student_rank=2))


def test_a_change_across_a_gap_without_minima_is_not_trusted():
    def side(branch, alpha):
        sound = SimpleNamespace(doubts=())
        return SimpleNamespace(branch=branch, found=branch, alpha=alpha, stability=sound)

    near = _transition(0.5, 0.01, "continuous", (side("uninformed", 0.49), side("semantic", 0.6)))
    assert near.trusted
    far = _transition(0.1, 0.01, "continuous", (side("uninformed", 0.1), side("semantic", 0.64)))
    assert not far.trusted and "between alpha = 0.1 and 0.64" in far.reason
