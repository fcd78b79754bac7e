from __future__ import annotations

import csv
import json
import re
from dataclasses import fields

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dotphase as dp
from dotphase.finite_d.initialization import resolve_start
from dotphase.finite_d.prng_keys import Purpose, keys_at
from dotphase.training.settings import TrainingFields

#: One size for all tests, here and in the other engines: most of their time is compilation.
D, ALPHA = 200, 2.0


@pytest.fixture(scope="module")
def semantic(paper):
    return dp.train(paper, ALPHA, D, seeds=8, start="semantic")


def test_lbfgs_reaches_its_tolerance(semantic):
    assert semantic.converged
    for run in semantic.runs:
        assert run.gradient_norm / np.sqrt(D) <= 1e-6
        assert run.reason == "met the tolerance"


def test_reported_numbers_follow_from_the_weights(paper, semantic):
    run = semantic.runs[0]
    assert run.q == pytest.approx(0.25 * float(np.sum(run.weights**2)) / D, rel=1e-12)
    assert run.m == pytest.approx(abs(run.weights.sum()) / D, rel=1e-9)
    assert run.mechanism == "semantic"
    assert 0 < run.semantic_alignment <= 1


def test_both_test_errors_agree(semantic):
    miss = [(r.test_error_sampled - r.test_error) / r.test_error_sampled_stderr
            for r in semantic.runs]  # fmt: skip
    assert np.max(np.abs(miss)) < 4


def test_means_and_their_errors(semantic):
    values = [run.train_loss for run in semantic.runs]
    assert semantic.mean["train_loss"] == pytest.approx(np.mean(values))
    assert semantic.stderr["train_loss"] == pytest.approx(np.std(values, ddof=1) / np.sqrt(8))
    plain = json.loads(json.dumps(semantic.to_dict()))
    assert len(plain["runs"]) == 8
    assert "8 runs" in str(semantic)


def test_same_seed_same_numbers_whatever_the_batch(paper, semantic):
    again = dp.train(paper, ALPHA, D, seeds=1, start="semantic").runs[0]
    assert again.train_loss == semantic.runs[0].train_loss
    alone = dp.train(paper, ALPHA, D, seeds=1, first_index=1, start="semantic").runs[0]
    assert (alone.index, alone.train_loss) == (1, semantic.runs[1].train_loss)
    together = dp.train(paper, ALPHA, D, seeds=2, start="semantic", runs_per_batch=2)
    for actual, expected in zip(together.runs, semantic.runs, strict=False):
        assert actual.train_loss == pytest.approx(expected.train_loss, rel=1e-9)
        assert actual.test_error_sampled == pytest.approx(expected.test_error_sampled, rel=1e-5)
        np.testing.assert_allclose(actual.weights, expected.weights, atol=1e-4)


def test_positional_start_finds_the_positional_minimum(paper, semantic):
    training = dp.train(paper, ALPHA, D, seeds=2, start="positional")
    for run, other in zip(training.runs, semantic.runs, strict=False):
        assert run.converged
        assert run.mechanism == "positional"
        assert run.m > 5 * other.m
        assert run.theta < 0.5 * other.theta


def test_theory_and_training_agree(paper, semantic):
    """Within the fluctuations over data sets and corrections of order 1/d."""
    theory = dp.solve(paper, ALPHA, "semantic", log2_points=14)
    for name in ("train_loss", "test_error", "theta", "q"):
        value, error = theory.value(name), np.hypot(semantic.stderr[name], theory.stderr[name])
        assert abs(semantic.mean[name] - value) < 3 * error + 5 / D * value, name


@pytest.mark.parametrize(
    ("name", "settings", "slack"),
    [
        ("gd", {"lr": 10.0, "steps": 1000}, 1e-6),
        ("adam", {"lr": 0.03, "steps": 250}, 1e-6),
        ("sgd", {"lr": 0.5, "steps": 250}, 0.1),
    ],
)
def test_other_optimizers_reach_the_minimum_of_lbfgs(paper, semantic, name, settings, slack):
    training = dp.train(paper, ALPHA, D, seeds=2, start="semantic", optimizer=name, **settings)
    for run, best in zip(training.runs, semantic.runs, strict=False):
        assert run.train_loss == pytest.approx(best.train_loss, rel=slack)
        assert run.converged == (run.gradient_norm / np.sqrt(D) <= 1e-6)
        assert run.converged == (run.reason == "met the tolerance")
        assert run.converged == (name != "sgd")


def test_a_step_that_diverges_is_called_that(paper):
    training = dp.train(
        paper, ALPHA, D, seeds=2, start="semantic", optimizer="gd", lr=1e3, steps=1000
    )
    assert {run.outcome for run in training.runs} == {"diverged"}
    assert all("smaller step" in run.reason for run in training.runs)
    assert all(np.isfinite(run.train_loss) for run in training.runs)
    assert training.mean["train_loss"] is None
    json.dumps(training.to_dict(), allow_nan=False)


def test_single_precision(paper):
    training = dp.train(paper, ALPHA, D, seeds=1, dtype="float32")
    run = training.runs[0]
    assert run.weights.dtype == np.float32
    assert run.converged
    assert run.gradient_norm / np.sqrt(D) <= 1e-5


def test_the_users_start_on_an_untied_student_of_three_tokens(three_tokens):
    seen = []

    def start(key, teacher_weights, positions):
        seen.append((teacher_weights.shape, positions.shape))
        return np.ones((30, 2)) * 0.3 + teacher_weights

    training = dp.train(dp.untied(three_tokens), 2.0, 30, seeds=1, start=start)
    assert seen[0] == ((30, 1), (3, 30))
    assert training.start == "custom"
    assert training.converged
    run = training.runs[0]
    assert run.weights.shape == (30, 2)
    assert abs(run.test_error_sampled - run.test_error) < 4 * run.test_error_sampled_stderr


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"d": 1}, "d"),
        ({"alpha": 0.001}, "alpha"),
        ({"alpha": -1}, "alpha"),
        ({"optimizer": "newton"}, "optimizer"),
        ({"optimizer": np.ones(3)}, "optimizer"),
        ({"optimizer": np.array([])}, "optimizer"),
        ({"start": "nowhere"}, "start"),
        ({"start": lambda key, teacher, positions: np.zeros(3)}, "start"),
        ({"seeds": 0}, "seeds"),
        ({"lr": 0.1}, "lr"),
        ({"optimizer": "gd", "lr": -1}, "lr"),
        ({"optimizer": "gd", "steps": 3, "lr": [0.1, 0.2]}, "lr"),
        ({"steps": 0}, "steps"),
        ({"dtype": "int8"}, "dtype"),
        ({"d": 3000, "seeds": 10**6, "runs_per_batch": 10**6}, "runs_per_batch"),
        ({"d": 10**7}, "d"),
    ],
)
def test_bad_input(paper, arguments, field):
    with pytest.raises(dp.InvalidInput) as caught:
        dp.train(paper, **{"alpha": 1.0, "d": 20, "seeds": 1, **arguments})
    assert caught.value.field == field
    if field == "runs_per_batch":
        assert re.search(r"use runs_per_batch \d+ or less", str(caught.value))


def test_out_of_memory_while_running_names_a_batch(paper, monkeypatch):
    from dotphase.training import run

    def fail(*arguments):
        raise MemoryError

    monkeypatch.setattr(run, "prepare_runs", fail)
    with pytest.raises(dp.InvalidInput, match="use runs_per_batch 2 or less"):
        dp.train(paper, 1.0, 20, seeds=4, runs_per_batch=4)


def test_nan_is_never_converged(paper, monkeypatch):
    """The test error includes rarer fields than the training data."""
    from dotphase.training import run

    measure = run.measure_runs
    nan = jnp.full(1, jnp.nan)
    monkeypatch.setattr(
        run, "measure_runs", lambda *arguments: measure(*arguments) | {"test_error": nan}
    )
    training = dp.train(paper, ALPHA, D, seeds=1)
    assert not training.converged and training.runs[0].outcome == "not_finite"
    assert training.runs[0].reason.startswith("met numbers that are not finite: ")
    assert training.mean["test_error"] is None


def test_an_interrupt_keeps_the_finished_runs(paper):
    def stop(event):
        if event.result is not None and event.result.index == 1:
            raise KeyboardInterrupt

    with pytest.raises(dp.Interrupted) as caught:
        dp.train(paper, ALPHA, D, seeds=3, start="semantic", progress=stop)
    assert [run.index for run in caught.value.finished.runs] == [0, 1]


def test_progress_has_steps_and_runs(paper):
    events = []
    training = dp.train(
        paper, 2.0, 40, seeds=3, optimizer="gd", steps=600, runs_per_batch=2,
        progress=events.append,
    )  # fmt: skip
    runs = [event for event in events if event.stage == "training"]
    assert [(event.done, event.total) for event in runs] == [(1, 3), (2, 3), (3, 3)]
    assert [event.result for event in runs] == list(training.runs)
    steps = [event for event in events if event.stage == "steps"]
    assert {event.total for event in steps} == {600} and all(e.result is None for e in steps)
    # Two batches of 600 steps at most, 250 per call; the first batch ends before its runs.
    assert [event.done for event in steps][:3] == [250, 500, 600]
    assert events.index(runs[0]) == 3 and len(steps) == 6


def test_settings_are_an_object_or_keywords(paper):
    settings = dp.TrainingSettings(optimizer="gd", lr=0.1, steps=7)
    first = dp.train(paper, ALPHA, D, seeds=1, settings=settings)
    assert first.optimizer == "gd" and first.runs[0].iterations == 7
    longer = dp.train(paper, ALPHA, D, seeds=1, settings=settings, steps=9)
    assert longer.runs[0].iterations == 9
    with pytest.raises(TypeError, match="'stepz'; did you mean steps"):
        dp.train(paper, ALPHA, D, stepz=3)
    with pytest.raises(TypeError, match="'colour'; settings are optimizer, steps"):
        dp.train(paper, ALPHA, D, colour=3)
    assert list(TrainingFields.__annotations__) == [f.name for f in fields(settings)]


def test_reference_values(paper, reference):
    rows = csv.DictReader((reference / "training.csv").read_text(encoding="utf-8").splitlines())
    selected = ("positional", "1000", "0.5")
    row = next(r for r in rows if (r["start"], r["d"], r["alpha"]) == selected)
    training = dp.train(paper, 0.5, 1000, seeds=8, start="positional", held_out=2,
                        teacher_norm="random")  # fmt: skip
    for name in ("train_loss", "test_error", "m"):
        expected, stderr = float(row[name]), float(row[f"{name}_stderr"])
        allowed = 3 * np.hypot(stderr, training.stderr[name]) + 0.01 * expected
        assert abs(training.mean[name] - expected) < allowed, name


def test_one_pass_uses_every_sentence_once(paper):
    """Two steps on the two halves of the data, with the share of the penalty of each sentence."""
    d, lr = 24, 3.0
    rule = {"optimizer": "sgd", "fresh": True, "lr": lr, "minibatch": 12, "held_out": 2}
    start = dp.start_from(theta=0.1, m=0.1, q=0.1)
    (run,) = dp.train(paper, 1.0, d, seeds=1, start=start, **rule).runs
    assert run.iterations == 2
    key = keys_at(jax.random.key(0), jnp.asarray([[0]]))[0]
    data = dp.sample(paper, d, 24, key)
    positions = jnp.asarray(dp.custom_training.position_vectors(paper, d))
    weights = resolve_start(paper, start)(Purpose.START.of(key), data.teacher_weights, positions)
    penalized = paper.replace(ridge=float(paper.ridge) * 12 / d)
    reduce = eqx.filter_jit(dp.custom_training.reduce)
    value_and_gradient = eqx.filter_jit(dp.custom_training.value_and_gradient)
    for half in (slice(0, 12), slice(12, 24)):
        part = data._replace(tokens=data.tokens[half], noise=data.noise[half])
        weights -= lr * value_and_gradient(penalized, reduce(paper, part), weights)[1]
    np.testing.assert_allclose(run.weights, weights, rtol=1e-9)


def test_one_pass_records_alpha(paper):
    rule = {"optimizer": "sgd", "fresh": True, "lr": 3.0, "minibatch": 1, "held_out": 2}
    path = dp.train(paper, 9.0, 24, seeds=1, record=True, **rule).path
    assert path["alpha"].values[[0, -1]].tolist() == [0.0, 9.0]
    assert path.sizes["step"] == 109


@pytest.mark.parametrize(
    "change",
    [{"optimizer": "gd"}, {"minibatch": 64}, {"steps": 100}, {"minibatch": 24, "steps": 3}],
)
def test_one_pass_has_enough_sentences(paper, change):
    with pytest.raises(dp.InvalidInput, match=r"fresh|sentences"):
        dp.train(paper, 2.0, 24, **{"optimizer": "sgd", "fresh": True} | change)
    with pytest.raises(dp.InvalidInput, match="fresh"):
        dp.grid(lambda omega: paper, [2.0], [0.3], 24, optimizer="sgd", fresh=True)
