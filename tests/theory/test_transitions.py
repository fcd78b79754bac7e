"""Kinds of transitions, and where the test error passes that of the linear layer."""

import math
from types import SimpleNamespace

import pytest

from dotphase.theory.transitions import Transition, _transition, beats_linear, loss_gap


def solution(branch, alpha=1.0, loss=1.0, *, test_error=1.0, minimum=True):
    """The attributes of a solution that transitions compare."""
    return SimpleNamespace(
        branch=branch, alpha=alpha, free_energy=loss, test_error=test_error, is_minimum=minimum
    )


@pytest.mark.parametrize(
    ("first", "second", "gap"),
    [
        (solution("positional", loss=1.0), solution("semantic", loss=1.5), 0.5),
        (solution("positional"), solution("semantic", minimum=False), math.inf),
        (solution("positional", minimum=False), solution("semantic"), -math.inf),
        # A branch that has just grown out of a simpler one does not count.
        (solution("uninformed", loss=1.0), solution("semantic", loss=0.9999), math.inf),
    ],
)
def test_the_gap_of_a_pair(first, second, gap):
    assert loss_gap((first, second)) == gap


def test_the_gap_without_minima_is_nan():
    pair = solution("positional", minimum=False), solution("semantic", minimum=False)
    assert math.isnan(loss_gap(pair))


def test_a_test_error_that_jumps_past_the_linear_layer_has_the_error_of_the_jump():
    low, high = solution("positional", test_error=2.0), solution("semantic", 2.0)
    sides = tuple(SimpleNamespace(alpha=1.5, test_error=error) for error in (2.0, 0.5))
    jump = Transition(1.5, 0.01, "positional", "semantic", "crossing", 0.0, True, "", sides)
    survey = SimpleNamespace(lowest=[low, high])
    crossing = beats_linear(survey, [jump], 1.0, None, None)
    assert (crossing.alpha, crossing.stderr) == (1.5, 0.01)
    assert "positional -> semantic at alpha = 1.500 ± 0.010" in crossing.message
    crossing = beats_linear(survey, [jump], math.nan, None, None)
    assert math.isnan(crossing.alpha) and "no linear layer" in crossing.message


def test_a_change_across_a_gap_without_minima_is_not_trusted():
    def side(branch, alpha):
        sound = SimpleNamespace(doubts=())
        return SimpleNamespace(branch=branch, found=branch, alpha=alpha, stability=sound)

    near = _transition(0.5, 0.01, "continuous", (side("uninformed", 0.49), side("semantic", 0.6)))
    assert near.trusted
    far = _transition(0.1, 0.01, "continuous", (side("uninformed", 0.1), side("semantic", 0.64)))
    assert not far.trusted and "between alpha = 0.1 and 0.64" in far.reason
