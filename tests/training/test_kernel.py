"""One student on one data set: its objective, and what is noted on the way."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dotphase as dp
from dotphase.finite_d.preparation import prepare
from dotphase.training.kernel import objective, train_one, train_recording
from dotphase.training.loop import Objective, Schedule


def test_padding_changes_no_mini_batch(paper):
    """The same sentences are chosen, with the same weights, by the same key."""
    data = dp.sample(paper, 10, 30, 0)
    few = data._replace(tokens=data.tokens[:12], noise=data.noise[:12])
    key, weights = jax.random.key(1), np.full((10, 1), 0.3)

    @jax.jit
    def both(data, few):
        sets = prepare(paper, few), prepare(paper, data, 12)
        found = [objective(paper, each.reduced, 5).estimate(weights, key) for each in sets]
        all_of_them = objective(paper, sets[1].reduced, 20)  # more than there are
        whole = all_of_them.estimate(weights, key), all_of_them.value_and_gradient(weights)
        return *found, *whole

    (value, gradient), (other, others), every, full = both(data, few)
    assert value == pytest.approx(float(other), rel=1e-12)
    np.testing.assert_allclose(gradient, others, rtol=1e-9, atol=1e-15)
    # A mini-batch has no sentence twice: one of all sentences is all of them.
    assert every[0] == pytest.approx(float(full[0]), rel=1e-12)
    np.testing.assert_allclose(every[1], full[1], rtol=1e-9, atol=1e-15)
    assert value != pytest.approx(float(full[0]), rel=1e-3)


@pytest.mark.parametrize(("optimizer", "momentum"), [("gd", 0.0), ("momentum", 0.7)])
def test_steps_of_a_schedule(optimizer, momentum):
    """``Q <- Q - lr_t gradient + momentum (Q - Q before)``, on a parabola."""
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
    point, now, before = method.initialize(jnp.ones(1)), 1.0, 1.0
    for number, size in enumerate(lr):
        point = method.step(point, jnp.asarray(number))
        now, before = now - size * 2 * now + momentum * (now - before), now
        np.testing.assert_allclose(point.weights, now, rtol=1e-5)


def test_notes_end_where_training_ends(paper):
    recipe = dp.TrainingSettings(optimizer="gd", steps=6).recipe(10)
    arguments = recipe, jax.random.key(1), np.full((10, 1), 0.3)

    @eqx.filter_jit
    def both(data, recipe, key, weights):
        ready = prepare(paper, data)
        end, notes = train_recording(
            paper, ready, recipe, key, weights, jnp.sum, records=3, every=2
        )
        return end, notes, train_one(paper, ready, recipe, key, weights)

    end, notes, whole = both(dp.sample(paper, 10, 12, 0), *arguments)
    assert notes.shape == (4,) and int(end.steps) == int(whole.iterations) == 6
    assert float(notes[0]) == pytest.approx(3.0)
    np.testing.assert_allclose(end.point.weights, whole.weights, rtol=1e-12)
    assert float(notes[-1]) == pytest.approx(float(whole.weights.sum()), rel=1e-12)
    assert not np.allclose(notes[1:], notes[:-1], rtol=1e-6)
