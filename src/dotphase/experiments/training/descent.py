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

from dotphase.config import validation
from dotphase.errors import InvalidInput
from dotphase.finite_d.batches import check_run_fits
from dotphase.finite_d.datasets import count_sentences, draw_dataset, position_vectors
from dotphase.finite_d.loss import Weights
from dotphase.finite_d.overlaps import TokenOverlaps, token_overlaps
from dotphase.finite_d.preparation import prepare
from dotphase.finite_d.prng_keys import Purpose, keys_at
from dotphase.model.definition import Model, refuse
from dotphase.runtime.precision import in_double_precision
from dotphase.storage.provenance import provenance
from dotphase.training.kernel import Recipe, train_recording
from dotphase.training.settings import TrainingSettings

#: tau of one step: small against the time on which the overlaps move.
STEP = 0.5
#: A gradient that no point has, so that nothing stops early.
NEVER = 1e-300


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

    Examples
    --------
    >>> start = {"m": 0.1, "theta": 0.03, "q": 0.06}
    >>> runs = dp.flow.descent(dp.positional_semantic(), 2.0, 40, **start, until=4.0, seeds=2)
    >>> runs["m"].dims
    ('seed', 'tau')
    """
    refuse(model, "the flow", "latent", "correlation")
    if model.student_rank != 1 or model.teacher_rank != 1:
        ranks = (model.student_rank, model.teacher_rank)
        raise InvalidInput("ranks of student and teacher", ranks, "must both be 1")
    length, rho = float(model.positions[0, 0]), float(model.rho[0])
    if length <= 0:
        raise InvalidInput("positions", model.positions.tolist(), "must have p_1 not zero")
    n = count_sentences(model, alpha, d)
    records = validation.integer("records", records, at_least=1)
    until = validation.number("until", until, above=0)
    between = max(1, round(until / records / validation.number("step", step, above=0)))
    rest = q / rho - (theta / rho) ** 2 - m**2 / length
    if rest < 0:
        raise InvalidInput("q", q, f"must be >= {q - rho * rest:g}, which m and theta take")
    start = jnp.asarray([m / length, theta / rho, np.sqrt(rest)])
    lr = until / (records * between) / (n / d)
    # All steps are taken: no gradient is small enough to stop at.
    settings = TrainingSettings("gd", records * between, lr, tolerance=NEVER, seed=seed)
    check_run_fits(model, n, d)
    positions = position_vectors(model, d)
    _, sizes, modes = np.linalg.svd(positions, full_matrices=False)
    place = jnp.asarray(positions), jnp.asarray(modes[sizes > 1e-9])
    numbers = jnp.arange(validation.integer("seeds", seeds, at_least=1))
    rows = [
        _follow(model, n, key, *place, start, settings.recipe(d), records, between)
        for key in keys_at(jax.random.key(seed), numbers[:, None])
    ]
    times = until * np.arange(records + 1) / records
    asked = {"alpha": alpha, "d": d, "step": until / (records * between), "seed": seed}
    return xr.Dataset(
        {
            name: (("seed", "tau"), np.stack([np.ravel(getattr(row, name)) for row in rows]))
            for name in ("m", "theta", "q")
        },
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
    recipe: Recipe,
    records: int,
    between: int,
) -> TokenOverlaps:
    """Overlaps at the start and after every `between` steps."""
    d = positions.shape[1]
    drawn = draw_dataset(model, n, key, positions)

    # In the limit directions are orthogonal by themselves; here they are made to.
    def unit(vector: Array, *others: Array) -> Array:
        vector = vector - along.T @ (along @ vector)
        for other in others:
            vector = vector - other * (other @ vector)
        return vector / jnp.linalg.norm(vector)

    teacher = unit(drawn.teacher_weights[:, 0])
    other = unit(jax.random.normal(Purpose.START.of(key), (d,)), teacher)
    data = prepare(model, drawn._replace(teacher_weights=np.sqrt(d) * teacher[:, None]))
    weights = np.sqrt(d) * (start[0] * positions[0] + start[1] * teacher + start[2] * other)

    def note(weights: Weights) -> TokenOverlaps:
        return token_overlaps(model, weights, data.teacher_weights, positions)

    return train_recording(model, data, recipe, key, weights[:, None], note, records, between)[1]
