"""Verdicts: multipliers with errors, jumps, and the replicon."""

import numpy as np
import pytest

import dotphase as dp
from dotphase.theory.stability import Multipliers, Stability, describe_undecided


def test_untrusted_where_jumps_are_strong_trusted_where_they_are_not(paper):
    assert dp.solve(paper, 1.5, "semantic", log2_points=14).stability.trusted
    doubtful = dp.solve(paper, 0.85, "semantic", log2_points=14)
    assert doubtful.found == "semantic"
    assert not doubtful.stability.trusted
    assert "breaking replica symmetry would change" in doubtful.stability.reason


@pytest.mark.parametrize(
    ("value", "kind"), [(0.9, "minimum"), (0.97, "marginal"), (1.03, "marginal"), (1.1, "saddle")]
)
def test_a_multiplier_differs_from_one_by_two_standard_errors(value, kind):
    assert Multipliers({"theta": value, "m": -5.0}, {"theta": 0.02, "m": 0.1}).kind == kind
    assert Multipliers().kind == "unknown"


def test_an_unknown_error_is_described_in_words():
    text = describe_undecided(
        Multipliers({"theta": 1.1, "m": np.nan}, {"theta": np.nan, "m": np.nan})
    )
    assert "nan" not in text
    assert (
        "theta by 1.100, with an unknown error" in text
        and "multiplier of m could not be measured" in text
    )


def test_several_directions_are_named():
    multipliers = Multipliers({"theta": 1.5, "m": 1.2}, {"theta": 0.01, "m": 0.01})
    assert multipliers.rising == ["theta", "m"] and multipliers.undecided == []
    assert multipliers.towards == ["semantic", "positional"]
    verdict = Stability(0.5, 0.1, False, "a; b", "saddle", tuple(multipliers.towards))
    assert verdict.described == "saddle (towards semantic, positional)"
    assert verdict.doubts == ["a", "b"]
    assert Stability(0.5, 0.1, True, "fine", "minimum").doubts == []
