"""Students trained as the released ones were: plain gradient descent for a fixed time.

The released runs take 5000 steps of .15 on the full batch and stop there, converged or not: with
few sentences the weights have only decayed by ``(1 - .15 ridge)^5000``. Steps of another size h
follow the same flow, and their number gives the same decay:

    steps(h) = 5000 log(1 - .15 ridge)/log(1 - h ridge).

Two differences from the released runs reduce noise without a shift of the mean: all starts of a
cell have the same data, and Q* is scaled to ``|Q*|^2 = d``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dotphase import Model, positional_semantic
from dotphase.analysis import Rule
from dotphase.custom_training import (
    attention_error,
    count_sentences,
    draw_dataset,
    initial_weights,
    linear_error,
    position_vectors,
    project,
    quadrature,
    reduce,
    resolve_start,
    token_overlaps,
    token_products,
    value_and_gradient,
)

#: The released steps: their size and number.
LR, STEPS = 0.15, 5000
#: Our step, at the variance of the tokens of most runs. The curvature of the loss grows with the
#: fourth power of sigma.
STEP, SIGMA = 2.0, 0.5
#: Data sets are padded to this number of sizes, each compiled separately. Below this total of
#: numbers all are padded to the largest.
SIZES, WORTH = 3, 2**30
#: Constant folded into the key of a cell for the initialization; the key itself draws the data.
START_STREAM = 101
#: Cells trained at once, on an accelerator and on a CPU.
LANES, CPU_LANES = 192, 1


@dataclass(frozen=True)
class Cell:
    """One training: a model, the number of sentences per dimension, a data set."""

    omega: float
    sigma: float
    ridge: float
    mixing: str
    alpha: float
    run: int

    def model(self, rank: int) -> Model:
        """The model with a student of this rank."""
        return positional_semantic(
            self.omega, self.sigma, self.ridge, mixing=self.mixing, student_rank=rank
        )


def step_size(sigma: float) -> float:
    """Size of a step that is stable and close to the flow."""
    return max(LR, min(STEP, STEP * (SIGMA / sigma) ** 4))


def steps_of(lr: float, ridge: float) -> int:
    """Steps of size `lr` after which free weights have decayed as in the released runs."""
    return round(STEPS * math.log1p(-LR * ridge) / math.log1p(-lr * ridge))


def train_cells(
    cells: Sequence[Cell],
    d: int,
    *,
    rank: int = 1,
    starts: Sequence[str] = ("semantic", "positional"),
    seed: int = 0,
    dtype: str = "float32",
    lr: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Float[np.ndarray, "cells starts"]]:
    """Train every cell from every start and measure the released quantities.

    Parameters
    ----------
    cells : sequence of Cell
        Trainings; the index of a cell in the list determines its data.
    d, rank : int
        Dimension, and columns of the student.
    starts : names of starts
        Initializations; they share the data of a cell.
    seed, dtype : int, str
        Seed of everything random, and precision; the released runs are in single precision.
    lr : float, optional
        Size of the steps; by default `step_size`.

    Returns
    -------
    dict of arrays
        ``train_loss``, ``test_error``, ``linear_test_error`` of the layer fitted to the same data,
        the norms ``m`` and ``theta`` as in the theory, the larger and the smaller of the columns of
        the student in each, and the norm of the final ``gradient`` over ``sqrt d``.
    """
    with jax.enable_x64(dtype == "float64"):
        return _train_cells(cells, d, rank, starts, seed, dtype, lr, progress)


def _train_cells(
    cells: Sequence[Cell],
    d: int,
    rank: int,
    starts: Sequence[str],
    seed: int,
    dtype: str,
    lr: float | None,
    progress: Callable[[int, int], None] | None,
) -> dict[str, Float[np.ndarray, "cells starts"]]:
    model = cells[0].model(rank)
    initializations = tuple(resolve_start(model, start) for start in starts)
    sizes = np.asarray([count_sentences(model, cell.alpha, d) for cell in cells])
    quantum = -(-int(sizes.max()) // (SIZES if sizes.sum() * d > WORTH else 1))
    padded = -(-sizes // quantum) * quantum
    lanes = CPU_LANES if jax.default_backend() == "cpu" else LANES
    positions = jnp.asarray(position_vectors(model, d), dtype)
    root, done = jax.random.key(seed), 0
    results: dict[str, np.ndarray] = {}
    for batch_indices, padded_batch, size in _batches(padded, lanes):
        batch = [cells[index] for index in padded_batch]
        arrays, static = _stacked([cell.model(rank) for cell in batch], dtype)
        rates = np.asarray([step_size(cell.sigma) if lr is None else lr for cell in batch])
        steps = np.asarray([steps_of(h, cell.ridge) for h, cell in zip(rates, batch, strict=True)])
        keys = jax.vmap(lambda number: jax.random.fold_in(root, number))(jnp.asarray(padded_batch))
        out = _train(
            static, initializations, quadrature(model), size, positions, arrays, keys,
            sizes[padded_batch], rates.astype(dtype), steps,
        )  # fmt: skip
        for name, values in jax.device_get(out).items():
            all_values = results.setdefault(name, np.full((len(cells), len(starts)), np.nan))
            all_values[batch_indices] = values[: len(batch_indices)]
        done += len(batch_indices)
        if progress is not None:
            progress(done, len(cells))
    return results


def _batches(padded: np.ndarray, lanes: int) -> Iterator[tuple[Any, Any, int]]:
    """Yield indices of cells of one size, the same padded to a full batch, and the size."""
    for size in sorted(set(padded.tolist()), reverse=True):
        indices = np.flatnonzero(padded == size).tolist()
        for offset in range(0, len(indices), lanes):
            batch = indices[offset : offset + lanes]
            yield batch, [*batch, *[batch[-1]] * (lanes - len(batch))], size


def _stacked(models: Sequence[Model], dtype: str) -> tuple[Any, Any]:
    """Stack the numbers of models on a new axis, apart from their common structure."""
    parts = [eqx.partition(model, eqx.is_array_like) for model in models]
    leaves = [arrays for arrays, _ in parts]
    return jax.tree.map(lambda *values: np.stack(values).astype(dtype), *leaves), parts[0][1]


@eqx.filter_jit
def _train(
    static: Any,
    starts: tuple[Callable[..., Array], ...],
    rule: Rule,
    size: int,
    positions: Float[Array, "tokens d"],
    arrays: Any,
    keys: Array,
    counts: Array | np.ndarray,
    rates: Array | np.ndarray,
    steps: Array | np.ndarray,
) -> dict[str, Array]:
    def train_cell(arrays: Any, key: Array, n: Any, lr: Any, count: Any) -> dict[str, Array]:
        model = eqx.combine(arrays, static)
        data = draw_dataset(model, size, key, positions)
        used = (jnp.arange(size) < n).astype(positions.dtype)
        reduced = reduce(model, data)._replace(used=used)
        key = jax.random.fold_in(key, START_STREAM)
        initial = jnp.stack(
            [
                initial_weights(model, start, key, data.teacher_weights, positions)
                for start in starts
            ]
        )

        def step(_: Array, weights: Array) -> Array:
            gradients = jax.vmap(lambda w: value_and_gradient(model, reduced, w)[1])(weights)
            return weights - lr * gradients

        ends = jax.lax.fori_loop(0, count, step, initial)

        def measure(weights: Array) -> dict[str, Array]:
            loss, gradient = value_and_gradient(model, reduced, weights)
            overlaps = token_overlaps(model, weights, data.teacher_weights, positions)
            m, theta = jnp.abs(overlaps.m), jnp.abs(overlaps.theta[:, 0])
            return {
                "train_loss": loss / weights.shape[0],
                "gradient": jnp.linalg.norm(gradient) / np.sqrt(weights.shape[0]),
                "test_error": attention_error(
                    model, weights, data.teacher_weights, positions, rule
                ),
                "m": jnp.linalg.norm(m), "theta": jnp.linalg.norm(theta),
                "m_larger": jnp.max(m), "m_smaller": jnp.min(m),
                "theta_larger": jnp.max(theta), "theta_smaller": jnp.min(theta),
            }  # fmt: skip

        results = jax.lax.map(measure, ends)
        layer = _linear_layer(model, data.tokens, data.teacher_weights, used)
        linear = linear_error(model, layer, data.teacher_weights, rule)
        return {**results, "linear_test_error": jnp.broadcast_to(linear, (len(starts),))}

    # A single cell is compiled without the batch axis, which is faster on a CPU.
    if counts.shape[0] == 1:
        single = train_cell(
            jax.tree.map(lambda x: x[0], arrays), keys[0], counts[0], rates[0], steps[0]
        )
        return jax.tree.map(lambda x: x[None], single)
    return jax.vmap(train_cell)(arrays, keys, counts, rates, steps)


def _linear_layer(model: Model, tokens: Array, teacher_weights: Array, used: Array) -> Array:
    """``W = (sum T x x^T)(sum x x^T)^{-1}`` over the used sentences."""
    target = jax.vmap(model.teacher, in_axes=-1, out_axes=-1)(project(tokens, teacher_weights))
    xx = token_products(tokens) * used
    labels, inputs = jnp.einsum("ikn,kln->il", target, xx), jnp.sum(xx, axis=-1)
    return jnp.linalg.solve(inputs, labels.T).T
