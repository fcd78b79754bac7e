"""Test error of the linear positional layer ``f(x) = W x`` in the limit of large dimension."""

import math
from functools import lru_cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dotphase.model.definition import Model
from dotphase.numerics.quadrature import normal_points
from dotphase.runtime.memoize import memoize
from dotphase.runtime.precision import in_double_precision

_LOG2_POINTS = 14


@memoize(256)
@in_double_precision
def linear_test_error(model: Model, *, seed: int = 0) -> float:
    """Test error of the linear positional layer ``f(x) = W x`` at alpha of order one.

    With many samples per parameter ``W -> E[T]`` and therefore
    ``eps_lin = (1/L) E tr[(T - E T) diag(rho) (T - E T)^T]``. The average is over the
    teacher's fields ``h*_l ~ N(0, sigma_l^2 I)``. NaN for a model with a loss of its own, which
    has no such layer, and for tokens with latent means or correlations.

    Parameters
    ----------
    model : Model
        Teacher and data; the student does not matter.
    seed : int
        Seed of the Gaussian points of the average.

    Examples
    --------
    >>> round(dp.analysis.linear_test_error(dp.positional_semantic()), 5)
    0.00197
    """
    if not model.plain:
        return math.nan
    points = _points(model.length * model.teacher_rank, seed)
    return float(_variance(model, points.reshape(-1, model.length, model.teacher_rank)))


@lru_cache(maxsize=16)
def _points(dims: int, seed: int) -> Float[np.ndarray, "n dims"]:
    return normal_points(dims, 2**_LOG2_POINTS, np.random.default_rng([seed, 1]))


@eqx.filter_jit
def _variance(model: Model, points: Float[Array | np.ndarray, "n tokens t"]) -> Float[Array, ""]:
    targets = jax.vmap(model.teacher)(jnp.asarray(model.sigma[:, None] * points))
    spread = jnp.mean((targets - jnp.mean(targets, axis=0)) ** 2, axis=0)
    return jnp.sum(spread * model.rho) / model.length
