"""Settings of training: defaults of the optimizers, endpoints, and values for datasets."""

import jax.numpy as jnp
import numpy as np
import pytest

import dotphase as dp
from dotphase.training.optimizers import OPTIMIZERS


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_defaults_are_those_of_the_optimizer(name):
    settings, optimizer = dp.TrainingSettings(optimizer=name), OPTIMIZERS[name]
    assert settings.max_steps == optimizer.steps
    assert settings.has_fixed_steps == (name != "lbfgs") == (optimizer.lr is not None)
    assert settings.step_size == (optimizer.lr or 1.0)
    endpoint = settings.for_endpoint()
    assert endpoint.max_steps == optimizer.endpoint_steps
    assert endpoint.step_size == (optimizer.endpoint_lr or 1.0)


def test_an_endpoint_keeps_explicit_steps():
    endpoint = dp.TrainingSettings(optimizer="gd", steps=7, lr=0.2).for_endpoint()
    assert (endpoint.steps, endpoint.lr) == (7, 0.2)


def test_schedules_become_numbers():
    settings = dp.TrainingSettings(optimizer="gd", steps=3, lr=lambda step: 0.1 * (step + 1))
    np.testing.assert_allclose(settings.step_size, [0.1, 0.2, 0.3])
    values = settings.to_dict()
    assert values["lr"] == pytest.approx([0.1, 0.2, 0.3]) and values["steps"] == 3
    assert None not in values.values() and "tolerance" not in values


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-6), ("float32", 1e-5)])
def test_the_recipe_scales_the_tolerance_by_the_dimension(dtype, tolerance):
    recipe = dp.TrainingSettings(dtype=dtype).recipe(400)
    assert float(recipe.tolerance) == pytest.approx(20 * tolerance)
    explicit = dp.TrainingSettings(dtype=dtype, tolerance=0.5).recipe(400)
    assert float(explicit.tolerance) == pytest.approx(10.0)
    assert jnp.issubdtype(recipe.steps.dtype, jnp.integer)
