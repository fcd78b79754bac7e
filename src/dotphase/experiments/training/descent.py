"""Overlaps along gradient descent at finite dimension, from prescribed overlaps at the start.

A measurement of the predictions of `dotphase.flow.follow` for very many sentences: teachers with
``|Q*|^2 = d`` orthogonal to the positions, and students that start at given m, theta and q exactly,
with the other components of Q in a random direction. The unit of time is that of the flow,
``tau = step size x steps x alpha``.
"""

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
from dotphase.training.settings import TrainingSettings
from dotphase.training.single_run import Recipe, train_recording

#: tau of one step, small against the time scale of the overlaps.
STEP = 0.5
#: Tolerance that no gradient meets, so that all steps are taken.
UNREACHABLE = 1e-300


@in_double_precision
def descent(
    model: Model,
    alpha: float,
    d: int,
    *,
    seeds: int = 8,
    m: float,
    theta: float,
    q: float,
    until: float,
    step: float = STEP,
    records: int = 8,
    seed: int = 0,
) -> xr.Dataset:
    """Follow gradient descent on data sets of ``n = round(alpha d)`` sentences.

    Parameters
    ----------
    model : Model
        Student and teacher of rank one, ``p_1`` different from zero.
    alpha, d : float, int
        Sentences per dimension, and dimension of a token.
    seeds : int
        Data sets.
    m, theta, q : float
        Overlaps of token 1 at the start.
    until : float
        Final time tau.
    step : float
        tau of a step, rounded to a whole number of steps between records.
    records : int
        Number of records after the start.
    seed : int
        Seed of all random numbers.

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
    components = _components(model, m, theta, q)
    n = count_sentences(model, alpha, d)
    check_run_fits(model, n, d)
    records = validation.integer("records", records, at_least=1)
    until = validation.number("until", until, above=0)
    every = max(1, round(until / records / validation.number("step", step, above=0)))
    lr = until / (records * every) / (n / d)
    settings = TrainingSettings("gd", records * every, lr, tolerance=UNREACHABLE, seed=seed)
    positions = position_vectors(model, d)
    _, sizes, modes = np.linalg.svd(positions, full_matrices=False)
    vectors = jnp.asarray(positions), jnp.asarray(modes[sizes > 1e-9])
    indices = jnp.arange(validation.integer("seeds", seeds, at_least=1))
    rows = [
        _follow(model, n, key, *vectors, components, settings.recipe(d), records, every)
        for key in keys_at(jax.random.key(seed), indices[:, None])
    ]
    config = {"alpha": alpha, "d": d, "step": until / (records * every), "seed": seed}
    return xr.Dataset(
        {
            name: (("seed", "tau"), np.stack([np.ravel(getattr(row, name)) for row in rows]))
            for name in ("m", "theta", "q")
        },
        coords={"tau": until * np.arange(records + 1) / records},
        attrs=provenance(model, **config),
    )


def _components(model: Model, m: float, theta: float, q: float) -> Float[Array, " 3"]:
    """Components of Q along p_1, along Q* and along a random direction, over sqrt(d)."""
    refuse(model, "the flow", "latent", "correlation")
    if model.student_rank != 1 or model.teacher_rank != 1:
        ranks = (model.student_rank, model.teacher_rank)
        raise InvalidInput("ranks of student and teacher", ranks, "must both be 1")
    length, rho = float(model.positions[0, 0]), float(model.rho[0])
    if length <= 0:
        raise InvalidInput("positions", model.positions.tolist(), "must have p_1 not zero")
    remainder = q / rho - (theta / rho) ** 2 - m**2 / length
    if remainder < 0:
        rule = f"must be >= {q - rho * remainder:g}, the contribution of m and theta"
        raise InvalidInput("q", q, rule)
    return jnp.asarray([m / length, theta / rho, np.sqrt(remainder)])


@eqx.filter_jit
def _follow(
    model: Model,
    n: int,
    key: Array,
    positions: Float[Array, "tokens d"],
    modes: Float[Array, "modes d"],
    components: Float[Array, " 3"],
    recipe: Recipe,
    records: int,
    every: int,
) -> TokenOverlaps:
    """Overlaps at the start, and again after each `every` steps."""
    d = positions.shape[1]
    drawn = draw_dataset(model, n, key, positions)

    # Random directions are orthogonal only in the limit of large d.
    def unit(vector: Array, *excluded: Array) -> Array:
        vector = vector - modes.T @ (modes @ vector)
        for direction in excluded:
            vector = vector - direction * (direction @ vector)
        return vector / jnp.linalg.norm(vector)

    teacher = unit(drawn.teacher_weights[:, 0])
    random = unit(jax.random.normal(Purpose.START.of(key), (d,)), teacher)
    data = prepare(model, drawn._replace(teacher_weights=np.sqrt(d) * teacher[:, None]))
    directions = jnp.stack([positions[0], teacher, random])
    weights = np.sqrt(d) * (components @ directions)

    def measure(weights: Weights) -> TokenOverlaps:
        return token_overlaps(model, weights, data.teacher_weights, positions)

    return train_recording(model, data, recipe, key, weights[:, None], measure, records, every)[1]
