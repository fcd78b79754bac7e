"""Published facts and the rules by which they are judged."""

import math

import pytest

from dotphase.experiments.agreement import AGREES, DIFFERS
from dotphase.report.facts import Fact, facts, published
from dotphase.report.verdict import (
    OFF,
    against_equations,
    against_runs,
    between_engines,
    within_deviations,
    within_range,
)


def fact(value=1.0, spread=None, runs=None, **rest):
    about = {"table": "t", "quantity": "x", "at": {}, "kind": "runs", "source": "s", "note": "n"}
    return Fact(value=value, spread=spread, runs=runs, **{**about, **rest})


def test_every_fact_has_a_source_and_a_number():
    everything = [one for table in published().values() for one in table]
    assert len(everything) > 40
    for one in everything:
        assert one.source.startswith("arXiv:2402.03902")
        assert math.isfinite(one.value)
        assert one.kind in ("equations", "runs", "range")


def test_conditions_are_apart_from_values():
    first = facts("alpha_c")[0]
    assert first.at == {"omega": 0.0} and first.value == 0.548
    run = facts("semantic_start")[0]
    assert run.at == {"alpha": 1.005} and run.quantity == "test_error" and run.runs == 24
    wide = facts("histogram_attention")[0]
    assert wide.value == pytest.approx(0.42) and wide.spread == pytest.approx(0.01)


def test_rounding_is_half_of_the_last_digit():
    assert fact(1.241).rounding == pytest.approx(0.0005)
    assert fact(159.0).rounding == pytest.approx(0.05)


def test_runs_agree_within_their_errors_and_not_beyond():
    one = fact(1.0, spread=0.1, runs=25)  # standard error .02
    assert against_runs(one, 1.065, 0.0, 0.0).verdict == AGREES  # 3 x .02 + 1% + rounding
    assert against_runs(one, 1.13, 0.0, 0.0).verdict == DIFFERS
    assert against_runs(one, math.nan, 0.0, 0.0).verdict == DIFFERS


def test_our_spread_stands_in_for_one_that_was_not_published():
    row = against_runs(fact(1.0, runs=4), 1.2, 0.0, 0.2)
    assert row.reference_error is None  # it is not shown as if it had been published
    assert row.allowed == pytest.approx(3 * 0.1 + 0.01 + 0.05)
    assert row.verdict == AGREES


def test_published_solutions_are_off_only_with_evidence():
    one = fact(1.241, kind="equations")
    assert against_equations(one, 1.2412, 0.0001, "why").verdict == AGREES
    row = against_equations(one, 1.25, 0.001, "more points change nothing")
    assert row.verdict == OFF and "more points change nothing" in row.why and "-0.7%" in row.why
    assert against_equations(one, 1.25, 0.001, None).verdict == DIFFERS
    assert against_equations(one, math.nan, math.nan, "why").verdict == DIFFERS


def test_deviations_and_ranges():
    one = fact(0.61, spread=0.13, runs=10)
    assert within_deviations(one, 0.86, 0.0).verdict == AGREES
    assert within_deviations(one, 0.88, 0.0).verdict == DIFFERS
    with pytest.raises(ValueError, match="without a spread"):
        within_deviations(fact(1.0), 1.0, 0.0)
    wide = fact(0.42, spread=0.01, kind="range")
    assert within_range(wide, 0.47, 0.0, slack=0.05).verdict == AGREES
    assert within_range(wide, 0.49, 0.0, slack=0.05).verdict == DIFFERS


def test_engines_are_compared_with_both_errors():
    near = between_engines("x", {}, (1.0, 0.03), (1.15, 0.04), share=0.0)
    assert near.verdict == AGREES and near.allowed == pytest.approx(0.15)
    assert near.origin == "theory, this run"
    assert between_engines("x", {}, (1.0, 0.03), (1.16, 0.04), share=0.0).verdict == DIFFERS
