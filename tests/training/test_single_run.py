"""One student on one data set: its objective, and records along its path."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dotphase as dp
from dotphase.finite_d.preparation import prepare
from dotphase.training.loop import Objective, Schedule
from dotphase.training.single_run import objective, train_one, train_recording


def test_padding_changes_no_mini_batch(paper):
    """The same key draws the same sentences with the same weights."""
    data = dp.sample(paper, 10, 30, 0)
    few = data._replace(tokens=data.tokens[:12], noise=data.noise[:12])
    key, weights = jax.random.key(1), np.full((10, 1), 0.3)

    @jax.jit
    def estimates(data, few):
        exact, padded = prepare(paper, few), prepare(paper, data, 12)
        small = [objective(paper, p.reduced, 5).estimate(weights, key, 0) for p in (exact, padded)]
        large = objective(paper, padded.reduced, 20)  # larger than the data set
        return *small, large.estimate(weights, key, 0), large.value_and_gradient(weights)

    (value, gradient), with_padding, all_sentences, full = estimates(data, few)
    assert value == pytest.approx(float(with_padding[0]), rel=1e-12)
    np.testing.assert_allclose(gradient, with_padding[1], rtol=1e-9, atol=1e-15)
    # A mini-batch draws without repetition: at full size it contains every sentence.
    assert all_sentences[0] == pytest.approx(float(full[0]), rel=1e-12)
    np.testing.assert_allclose(all_sentences[1], full[1], rtol=1e-9, atol=1e-15)
    assert value != pytest.approx(float(full[0]), rel=1e-3)


@pytest.mark.parametrize(("optimizer", "momentum"), [("gd", 0.0), ("momentum", 0.7)])
def test_steps_of_a_schedule(optimizer, momentum):
    """``Q <- Q - lr_t gradient + momentum (Q - Q_previous)``, on a parabola."""
    lr = [0.3, 0.1, 0.8]
    settings = dp.TrainingSettings(
        optimizer=optimizer, steps=3, lr=lambda step: lr[step], momentum=momentum or 0.9
    )
    recipe = settings.recipe(1)
    schedule = Schedule(
        recipe.lr, recipe.steps, recipe.tolerance, jax.random.key(0), recipe.momentum
    )
    parabola = Objective(lambda w: (jnp.sum(w**2), 2 * w), None, None, None, None)
    method = settings.algorithm.build(parabola, schedule)
    point, weight, previous = method.initialize(jnp.ones(1)), 1.0, 1.0
    for index, size in enumerate(lr):
        point = method.step(point, jnp.asarray(index))
        step = -size * 2 * weight + momentum * (weight - previous)
        weight, previous = weight + step, weight
        np.testing.assert_allclose(point.weights, weight, rtol=1e-5)


def test_records_end_where_training_ends(paper):
    recipe = dp.TrainingSettings(optimizer="gd", steps=6).recipe(10)
    arguments = recipe, jax.random.key(1), np.full((10, 1), 0.3)

    @eqx.filter_jit
    def train_twice(data, recipe, key, weights):
        prepared = prepare(paper, data)
        end, records = train_recording(
            paper, prepared, recipe, key, weights, jnp.sum, records=3, every=2
        )
        return end, records, train_one(paper, prepared, recipe, key, weights)

    end, records, trained = train_twice(dp.sample(paper, 10, 12, 0), *arguments)
    assert records.shape == (4,) and int(end.steps) == int(trained.iterations) == 6
    assert float(records[0]) == pytest.approx(3.0)
    np.testing.assert_allclose(end.point.weights, trained.weights, rtol=1e-12)
    assert float(records[-1]) == pytest.approx(float(trained.weights.sum()), rel=1e-12)
    assert not np.allclose(records[1:], records[:-1], rtol=1e-6)
