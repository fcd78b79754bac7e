from __future__ import annotations

import json
import operator
from dataclasses import fields

import numpy as np
import pytest

import dotphase as dp
from dotphase.gamp import run as engine
from dotphase.gamp.run import run_message_passing
from dotphase.gamp.settings import AmpFields, AmpSettings

D, ALPHA = 200, 2.0


@pytest.fixture(scope="module")
def semantic(paper):
    return dp.amp(paper, ALPHA, D, seeds=6, start="semantic")


def test_a_fixed_point_is_a_critical_point_of_the_training_loss(semantic):
    assert semantic.converged
    for run in semantic.runs:
        assert run.gradient_norm / np.sqrt(D) <= 1e-8
        assert run.overlap_with_trained >= 0.99999
        assert run.train_loss == pytest.approx(run.trained_loss, rel=1e-9)


def test_state_evolution_is_followed_iteration_by_iteration(semantic):
    """Within the fluctuations over data sets, and terms of order 1/d."""
    for row in semantic.iterations[:30]:
        for name in ("q", "theta"):
            measured, predicted = row["measured"][name], row["predicted"][name]
            assert abs(measured - predicted) < 3 * row["stderr"][name] + 10 / D * predicted
    # The prediction moves: following it is not following a constant.
    first, last = semantic.iterations[1]["predicted"], semantic.iterations[20]["predicted"]
    assert first["q"] > 1.2 * last["q"]


def test_runs_share_their_data_with_training(paper, semantic):
    training = dp.train(paper, ALPHA, D, seeds=1, start="semantic", tolerance=1e-9)
    assert training.runs[0].train_loss == pytest.approx(semantic.runs[0].train_loss, rel=1e-9)


def test_same_seed_same_numbers(paper, semantic):
    again = dp.amp(paper, ALPHA, D, seeds=1, start="semantic")
    assert again.runs[0].train_loss == semantic.runs[0].train_loss
    assert again.runs[0].history == semantic.runs[0].history


def test_a_run_reports_when_and_why_it_does_not_settle(paper):
    result = dp.amp(paper, ALPHA, D, seeds=1, start="positional", iterations=3)
    run = result.runs[0]
    assert not run.converged
    assert run.outcome == "steps"
    assert "all steps" in run.reason
    plain = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert [row["iteration"] for row in plain["iterations"]] == [0, 1, 2, 3]
    assert "overlap_with_trained" in plain["mean"]
    assert "state evolution" in str(result)


def test_nan_is_never_converged(paper, monkeypatch):
    measure, nan = engine.measure_runs, np.full(1, np.nan)
    monkeypatch.setattr(
        engine, "measure_runs", lambda *arguments: measure(*arguments) | {"test_error": nan}
    )
    settings = AmpSettings()
    result = run_message_passing(paper, ALPHA, D, seeds=1, start="semantic", settings=settings)
    run = result.runs[0]
    assert not run.converged and run.outcome == "not_finite"
    assert run.reason.startswith("met numbers that are not finite: ")


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"model": None}, "model"),
        ({"d": 1}, "d"),
        ({"alpha": 1e-4}, "alpha"),
        ({"damping": 1.0}, "damping"),
        ({"start": "nowhere"}, "start"),
        ({"iterations": 0}, "iterations"),
        ({"seeds": 0}, "seeds"),
    ],
)
def test_bad_input(paper, arguments, field):
    with pytest.raises(dp.InvalidInput) as caught:
        dp.amp(**{"model": paper, "alpha": 1.0, "d": 20, **arguments})
    assert caught.value.field == field


def test_every_run_is_an_event(paper):
    events = []
    result = dp.amp(paper, ALPHA, 40, seeds=2, iterations=2, progress=events.append)
    assert [(event.done, event.total) for event in events] == [(1, 2), (2, 2)]
    assert all(map(operator.is_, result.runs, [event.result for event in events]))


def test_without_a_reference_nothing_is_compared(paper):
    settings = AmpSettings(iterations=2)
    result = run_message_passing(paper, ALPHA, D, seeds=1, start="semantic", settings=settings)
    assert result.runs[0].overlap_with_trained is None
    assert result.to_dict()["overlap_with_trained"] is None


def test_settings_have_one_list():
    names = [field.name for field in fields(AmpSettings)]
    assert list(AmpFields.__annotations__) == names
