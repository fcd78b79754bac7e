"""What is reported of a student on a data set, whatever engine found its weights."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from dotphase._numerics.prox import over_points
from dotphase._numerics.quadrature import Rule
from dotphase.finite.data import BLOCK, draw_sentences
from dotphase.finite.loss import (
    Weights,
    exact_loss,
    project,
    reduce,
    sentence_losses,
    value_and_gradient,
)
from dotphase.finite.overlaps import overlap_norms
from dotphase.finite.prepare import Prepared
from dotphase.finite.test_error import attention_error, linear_error
from dotphase.model import Model

#: Held-out sentences for the sampled test error.
HELD_OUT = 1024


class Measured(NamedTuple):
    """What is cheap to measure: loss per dimension and gradient, overlaps and alignments.

    The names mean what they mean in `dotphase.finite.runs.Run`.
    """

    train_loss: Float[Array, ""]
    gradient_norm: Float[Array, ""]
    m: Float[Array, ""]
    theta: Float[Array, ""]
    q: Float[Array, ""]
    semantic_alignment: Float[Array, ""]
    positional_alignment: Float[Array, ""]


def measure(model: Model, data: Prepared, weights: Weights) -> Measured:
    """Loss, gradient and overlaps of one student."""
    value, gradient = value_and_gradient(model, data.reduced, weights)
    if model.proximal is not None:  # what was minimised is smoother than the loss
        value = exact_loss(model, data.reduced, weights)
    overlaps = overlap_norms(model, weights, data.teacher_weights, data.positions)
    return Measured(value / weights.shape[0], jnp.linalg.norm(gradient), *overlaps)


def measure_run(
    model: Model, data: Prepared, weights: Weights, rule: Rule, key: Array, blocks: int
) -> dict[str, Float[Array, ""]]:
    """Every measured number of a `Run`; the held-out sentences are drawn from `key`."""
    teacher_weights, positions = data.teacher_weights, data.positions
    linear = {}
    if model.plain:
        if data.linear is None:
            raise ValueError("a padded data set has no linear layer to report")
        error = linear_error(model, data.linear, teacher_weights, rule)
        linear = {"linear_test_error": error}
    mean, stderr = held_out_error(model, data, weights, key, blocks)
    return {
        **measure(model, data, weights)._asdict(),
        "test_error": attention_error(model, weights, teacher_weights, positions, rule),
        "test_error_sampled": mean,
        "test_error_sampled_stderr": stderr,
        **linear,
    }


def held_out_error(
    model: Model, data: Prepared, weights: Weights, key: Array, blocks: int
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Mean and standard error of ``|y - f|^2/(d L)``, or of the metric, over fresh sentences, block
    by block."""

    def block(totals: tuple[Array, Array], key: Array) -> tuple[tuple[Array, Array], None]:
        sentences = draw_sentences(model, BLOCK, key, data.teacher_weights, data.positions)
        fresh = reduce(model, sentences)
        fields = project(fresh.z, weights)
        if model.loss is not None:
            errors = over_points(model.missed)(fields, fresh.form)
        else:
            errors = 2 * sentence_losses(model, fresh, fields) / model.length
        return (totals[0] + jnp.sum(errors), totals[1] + jnp.sum(errors**2)), None

    zero = jnp.zeros((), weights.dtype)
    (total, squares), _ = jax.lax.scan(block, (zero, zero), jax.random.split(key, blocks))
    count = blocks * BLOCK
    mean = total / count
    return mean, jnp.sqrt(jnp.maximum(squares / count - mean**2, 0) / (count - 1))


def count_blocks(held_out: int) -> int:
    """Blocks that hold at least so many sentences."""
    return -(-held_out // BLOCK)
