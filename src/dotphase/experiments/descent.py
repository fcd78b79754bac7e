"""Overlaps along gradient descent at finite dimension, from prescribed overlaps at the start.

What `dotphase.flow.follow` predicts for very many sentences, measured: teachers with
``|Q*|^2 = d`` orthogonal to the positions, and students that start at given m, theta and q
exactly, with everything else of Q in a random direction. Time is counted as in the flow,
``tau = step size x steps x alpha``.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float

from dotphase._numerics import validate
from dotphase._numerics.precision import in_double_precision
from dotphase.errors import InvalidInput
from dotphase.finite import loss as reduced
from dotphase.finite.data import Dataset, count_sentences, draw, position_vectors
from dotphase.model import Model
from dotphase.storage.provenance import provenance

#: tau of one step: small against the time on which the overlaps move.
STEP = 0.5


@in_double_precision
def descent(
    model: Model,
    alpha: float,
    d: int,
    *,
    m: float,
    theta: float,
    q: float,
    until: float,
    records: int = 8,
    seeds: int = 8,
    step: float = STEP,
    seed: int = 0,
) -> xr.Dataset:
    """Follow gradient descent on data sets of ``n = round(alpha d)`` sentences.

    Parameters
    ----------
    model : Model
        Student and teacher of rank one, ``p_1`` different from zero.
    alpha, d : float, int
        Sentences per dimension, and dimension of a token.
    m, theta, q : float
        Overlaps of token 1 at the start.
    until : float
        Time tau at the end.
    records : int
        Times after the start at which the overlaps are noted.
    seeds : int
        Data sets.
    step : float
        tau of a step, rounded so that a whole number of steps lies between two records.
    seed : int
        Seed of everything random.

    Returns
    -------
    xarray.Dataset
        ``m``, ``theta`` and ``q`` over seed and tau.
    """
    if model.student_rank != 1 or model.teacher_rank != 1:
        ranks = (model.student_rank, model.teacher_rank)
        raise InvalidInput("ranks of student and teacher", ranks, "must both be 1")
    length, rho = float(model.positions[0, 0]), float(model.rho[0])
    if length <= 0:
        raise InvalidInput("positions", model.positions.tolist(), "must have p_1 not zero")
    n = count_sentences(model, alpha, d)
    records = validate.whole("records", records, at_least=1)
    until = validate.number("until", until, above=0)
    between = max(1, round(until / records / validate.number("step", step, above=0)))
    rest = q / rho - (theta / rho) ** 2 - m**2 / length
    if rest < 0:
        raise InvalidInput("q", q, f"must be >= {q - rho * rest:g}, which m and theta take")
    start = jnp.asarray([m / length, theta / rho, np.sqrt(rest)])
    lr = jnp.asarray(until / (records * between) / (n / d))
    positions = position_vectors(model, d)
    _, sizes, modes = np.linalg.svd(positions, full_matrices=False)
    place = jnp.asarray(positions), jnp.asarray(modes[sizes > 1e-9])
    root = jax.random.key(validate.whole("seed", seed, at_least=0))
    rows = [
        _follow(model, n, jax.random.fold_in(root, k), *place, start, lr, records, between)
        for k in range(validate.whole("seeds", seeds, at_least=1))
    ]
    values = np.stack([np.asarray(row) for row in rows])
    times = until * np.arange(records + 1) / records
    asked = {"alpha": alpha, "d": d, "step": until / (records * between), "seed": seed}
    names = ("m", "theta", "q")
    return xr.Dataset(
        {name: (("seed", "tau"), values[..., k]) for k, name in enumerate(names)},
        coords={"tau": times},
        attrs=provenance(model, **asked),
    )


@eqx.filter_jit
def _follow(
    model: Model,
    n: int,
    key: Array,
    positions: Float[Array, "tokens d"],
    along: Float[Array, "modes d"],
    start: Float[Array, " 3"],
    lr: Float[Array, ""],
    records: int,
    between: int,
) -> Float[Array, "times 3"]:
    """(m, theta, q) at the start and after every `between` steps."""
    d, rho = positions.shape[1], model.rho[0]
    drawn = draw(model, n, key, positions)

    # In the limit directions are orthogonal by themselves; here they are made to.
    def unit(vector: Array, *others: Array) -> Array:
        vector = vector - along.T @ (along @ vector)
        for other in others:
            vector = vector - other * (other @ vector)
        return vector / jnp.linalg.norm(vector)

    teacher = unit(drawn.teacher_weights[:, 0])
    other = unit(jax.random.normal(jax.random.fold_in(key, 101), (d,)), teacher)
    some = reduced.reduce(model, Dataset(drawn.tokens, np.sqrt(d) * teacher[:, None], positions))
    weights = np.sqrt(d) * (start[0] * positions[0] + start[1] * teacher + start[2] * other)

    def overlaps(weights: Array) -> Array:
        parts = [positions[0] @ weights, rho * (teacher @ weights), rho * (weights @ weights)]
        return jnp.stack(parts) / jnp.asarray([np.sqrt(d), np.sqrt(d), d])

    def step(_: int, weights: Array) -> Array:
        return weights - lr * reduced.value_and_gradient(model, some, weights[:, None])[1][:, 0]

    def record(weights: Array, _: None) -> tuple[Array, Array]:
        weights = jax.lax.fori_loop(0, between, step, weights)
        return weights, overlaps(weights)

    _, found = jax.lax.scan(record, weights, length=records)
    return jnp.concatenate([overlaps(weights)[None], found])
