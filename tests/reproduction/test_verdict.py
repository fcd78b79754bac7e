"""Published facts and the rules by which they are judged."""

import math

import numpy as np
import pytest

from dotphase.experiments.comparison.agreement import AGREES, DIFFERS
from reproduction.facts import Fact, facts, published
from reproduction.verdict import (
    OFF,
    OUTSIDE,
    UNDECIDED,
    against_equations,
    against_runs,
    between_engines,
    widening,
    within,
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
    one = fact(1.000001, spread=0.05, runs=25)  # standard error .01
    assert against_runs(one, 1.035, 0.0, 0.0).verdict == AGREES  # 3 x .01 + 1%
    assert against_runs(one, 1.045, 0.0, 0.0).verdict == DIFFERS
    assert against_runs(one, math.nan, 0.0, 0.0).verdict == DIFFERS


def test_our_spread_stands_in_for_one_that_was_not_published():
    row = against_runs(fact(1.0, runs=4), 1.2, 0.0, 0.2)
    assert row.reference_error is None  # it is not shown as if it had been published
    assert row.allowed == pytest.approx(3 * 0.1 + 0.01 + 0.05)
    assert row.verdict == UNDECIDED  # within 36% is no agreement


def test_published_solutions_are_off_only_with_evidence():
    one = fact(1.241, kind="equations")
    assert against_equations(one, 1.2412, 0.0001, "why").verdict == AGREES
    row = against_equations(one, 1.25, 0.001, "more points change nothing")
    assert row.verdict == OFF and "more points change nothing" in row.why and "-0.7%" in row.why
    assert against_equations(one, 1.25, 0.001, None).verdict == DIFFERS
    assert against_equations(one, math.nan, math.nan, "why").verdict == DIFFERS


def test_ranges_tell_a_value_from_the_one_that_would_mean_something_else():
    wide = fact(0.42, spread=0.01, kind="range")
    assert within_range(wide, 0.436, 0.001, alternative=0.1).verdict == AGREES
    assert within_range(wide, 0.44, 0.001, alternative=0.1).verdict == DIFFERS
    assert within_range(wide, 0.1, 0.001, alternative=0.1).verdict == DIFFERS
    assert within_range(wide, 0.42, 0.05, alternative=0.1).verdict == UNDECIDED


def test_engines_are_compared_with_both_errors():
    near = between_engines("x", {}, (1.0, 0.003), (1.015, 0.004), share=0.0)
    assert near.verdict == AGREES and near.allowed == pytest.approx(0.015)
    assert near.origin == "theory, this run"
    assert between_engines("x", {}, (1.0, 0.003), (1.016, 0.004), share=0.0).verdict == DIFFERS
    coarse = between_engines("x", {}, (1.0, 0.03), (1.0, 0.04), share=0.0)
    assert coarse.verdict == UNDECIDED and coarse.outside("why").verdict == OUTSIDE


def rules():
    """Every kind of comparison, as a function of our number."""
    one = fact(2.0, spread=0.02, runs=16)
    wide = fact(0.42, spread=0.01, kind="range")
    equations = fact(1.241, kind="equations")
    return {
        "runs": (2.0, lambda x: against_runs(one, x, 0.004, 0.0)),
        "range": (0.42, lambda x: within_range(wide, x, 0.002, alternative=0.1)),
        "equations": (1.241, lambda x: against_equations(equations, x, 0.001, None)),
        "engines": (2.0, lambda x: between_engines("x", {}, (2.0, 0.003), (x, 0.004))),
        "given": (0.0, lambda x: within("x", {}, 0.0, (x, 0.1), 0.3, "s", "why", tolerance=0.3)),
    }


@pytest.mark.parametrize("kind", rules())
def test_every_comparison_catches_what_it_says_it_catches(kind):
    """Fed a wrong number of that size, drawn with its noise, it fails 39 times out of 40."""
    value, compare = rules()[kind]
    row = compare(value)
    assert row.verdict == AGREES and row.catches <= 2 * row.tolerance * 1.0001
    drawn = row.noise * np.random.default_rng(0).normal(size=400)
    for side in (1, -1):
        wrong = [compare(value + side * row.catches + noise).verdict for noise in drawn]
        assert np.mean([verdict == DIFFERS for verdict in wrong]) > 0.95
    assert compare(value + 2 * row.tolerance).verdict == DIFFERS
    # And the truth passes: three standard errors are rarely exceeded.
    right = [compare(value + noise).verdict for noise in drawn]
    assert np.mean([verdict == AGREES for verdict in right]) > 0.98


def test_few_data_sets_widen_the_allowed_difference_and_not_the_printed_error():
    assert widening(2) == pytest.approx(78.6, abs=0.1) and widening(24) == pytest.approx(
        1.12, rel=0.01
    )
    few, known = (
        between_engines("x", {}, (1.0, 0.0), (1.0, 0.001), share=0.0, seeds=seeds)
        for seeds in (4, None)
    )
    assert few.stderr == known.stderr == 0.001
    assert few.allowed == pytest.approx(widening(4) * known.allowed) and "4 data sets" in few.why
    assert few.noise == pytest.approx(widening(4) * 0.001)
    row = against_runs(fact(1.0, spread=0.0, runs=9), 1.0, 0.001, 0.0, share=0.0, seeds=4)
    assert row.allowed == pytest.approx(few.allowed + row.reference * 0.05)


def test_the_quick_report_has_four_data_sets_or_more():
    from reproduction.items import ITEMS
    from reproduction.released.grids import MAPS, RANK_TWO, SCALING, slice_grid

    grids = [*MAPS["quick"].values(), RANK_TWO["quick"], slice_grid("quick", 0.7, 0.01)]
    seeds = [grid.runs for grid in grids] + [SCALING["quick"][0]]
    seeds += [ITEMS[name].sizes["quick"].get("seeds", 4) for name in ITEMS]
    assert min(seeds) >= 4
