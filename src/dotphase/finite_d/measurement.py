"""Measurements of a student on a data set, shared by training and message passing."""

from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dotphase.finite_d.batches import vmap_runs
from dotphase.finite_d.datasets import BLOCK_SIZE, Positions, TeacherWeights, draw_sentences
from dotphase.finite_d.loss import (
    Weights,
    exact_loss,
    project,
    reduce,
    sentence_losses,
    value_and_gradient,
)
from dotphase.finite_d.overlaps import overlap_norms
from dotphase.finite_d.preparation import Prepared
from dotphase.finite_d.prng_keys import Purpose
from dotphase.finite_d.test_error import attention_error, linear_error, teacher_and_student_fields
from dotphase.model import Model
from dotphase.model.nonfinite import diagnose_functions, unknown_cause
from dotphase.numerics.proximal_map import vmap_points
from dotphase.numerics.quadrature import Rule

#: Default number of held-out sentences for the sampled test error.
HELD_OUT = 1024


class Instance(NamedTuple):
    """Data set without its sentences: teacher, directions, and the linear layer or None."""

    teacher_weights: TeacherWeights
    positions: Positions
    linear: Float[Array, "tokens tokens"] | None


class Measurements(NamedTuple):
    """Cheap measurements: loss per dimension, gradient, overlaps and alignments.

    The fields are those of `dotphase.finite_d.runs.Run`.
    """

    train_loss: Float[Array, ""]
    gradient_norm: Float[Array, ""]
    m: Float[Array, ""]
    theta: Float[Array, ""]
    q: Float[Array, ""]
    semantic_alignment: Float[Array, ""]
    positional_alignment: Float[Array, ""]


def measure(model: Model, data: Prepared, weights: Weights) -> Measurements:
    """Measure loss, gradient and overlaps of one student."""
    value, gradient = value_and_gradient(model, data.reduced, weights)
    if model.proximal is not None:  # the minimized envelope is smoother than the loss
        value = exact_loss(model, data.reduced, weights)
    overlaps = overlap_norms(model, weights, data.teacher_weights, data.positions)
    return Measurements(value / weights.shape[0], jnp.linalg.norm(gradient), *overlaps)


def measure_runs(
    model: Model,
    data: Prepared,
    weights: Float[Weights, " runs"],
    rule: Rule,
    keys: Array,
    blocks: int,
) -> dict[str, Float[Array, " runs"]]:
    """Measure all numbers of a batch of runs; the keys draw the held-out sentences.

    Test errors are compiled separately, once for all sizes of data sets.
    """
    instance = Instance(data.teacher_weights, data.positions, data.linear)
    training = _measure_runs(model, data, weights)
    return {**training, **_test_runs(model, weights, instance, rule, keys, blocks)}


@eqx.filter_jit
def _measure_runs(
    model: Model, data: Prepared, weights: Float[Weights, " runs"]
) -> dict[str, Float[Array, " runs"]]:
    return vmap_runs(partial(measure, model))(data, weights)._asdict()


@eqx.filter_jit
def _test_runs(
    model: Model,
    weights: Float[Weights, " runs"],
    instance: Instance,
    rule: Rule,
    keys: Array,
    blocks: int,
) -> dict[str, Float[Array, " runs"]]:
    def test_run(weights: Weights, instance: Instance, key: Array) -> dict[str, Float[Array, ""]]:
        return test_errors(model, weights, instance, rule, Purpose.TEST.of(key), blocks)

    return vmap_runs(test_run)(weights, instance, keys)


def test_errors(
    model: Model, weights: Weights, instance: Instance, rule: Rule, key: Array, blocks: int
) -> dict[str, Float[Array, ""]]:
    """Return the test errors of a student and of the linear layer fitted to its data set."""
    teacher_weights, positions, layer = instance
    linear = {}
    if model.plain:
        if layer is None:
            raise ValueError("no linear layer was fitted to this data set")
        error = linear_error(model, layer, teacher_weights, rule)
        linear = {"linear_test_error": error}
    mean, stderr = held_out_error(model, weights, teacher_weights, positions, key, blocks)
    return {
        "test_error": attention_error(model, weights, teacher_weights, positions, rule),
        "test_error_sampled": mean,
        "test_error_sampled_stderr": stderr,
        **linear,
    }


def held_out_error(
    model: Model,
    weights: Weights,
    teacher_weights: TeacherWeights,
    positions: Positions,
    key: Array,
    blocks: int,
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Return mean and standard error of ``|y - f|^2/(d L)``, or of the metric, on new sentences."""

    def add_block(totals: tuple[Array, Array], key: Array) -> tuple[tuple[Array, Array], None]:
        sentences = draw_sentences(model, BLOCK_SIZE, key, teacher_weights, positions)
        fresh = reduce(model, sentences)
        fields = project(fresh.z, weights)
        if model.loss is not None:
            errors = vmap_points(model.test_loss)(fields, fresh.form)
        else:
            errors = 2 * sentence_losses(model, fresh, fields) / model.length
        return (totals[0] + jnp.sum(errors), totals[1] + jnp.sum(errors**2)), None

    zero = jnp.zeros((), weights.dtype)
    (total, squares), _ = jax.lax.scan(add_block, (zero, zero), jax.random.split(key, blocks))
    count = blocks * BLOCK_SIZE
    mean = total / count
    return mean, jnp.sqrt(jnp.maximum(squares / count - mean**2, 0) / (count - 1))


def count_blocks(held_out: int) -> int:
    """Return the number of blocks with at least `held_out` sentences in all."""
    return -(-held_out // BLOCK_SIZE)


def diagnose_run(model: Model, data: Prepared, weights: Weights, rule: Rule) -> str:
    """Name the function that is not finite, and the fields of the run at which it is not."""
    if not np.isfinite(np.asarray(weights)).all():
        return "the weights are not finite"
    reduced, teacher_weights, positions, _ = data
    test_h, test_omega, _ = teacher_and_student_fields(
        model, weights, teacher_weights, positions, rule
    )
    train_h = project(reduced.z - positions, teacher_weights)
    train_omega = project(reduced.z, weights)
    diagnosis = diagnose_functions(model, [train_h, test_h], [train_omega, test_omega])
    return diagnosis or unknown_cause(model)
