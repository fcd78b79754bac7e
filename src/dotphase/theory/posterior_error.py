"""Test error of the posterior mean of labels that the fields determine."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from jaxtyping import Float

from dotphase.model.definition import Model
from dotphase.model.validation import call_many
from dotphase.numerics.quadrature import N_SCRAMBLES, normal_points
from dotphase.numerics.statistics import mean_and_error

#: log2 of the number of points in each scramble.
LOG2_POINTS = 13


def test_error_at(
    model: Model, overlap: float | Float[np.ndarray, " t"], seed: int = 0
) -> tuple[float, float]:
    """Test error of the posterior mean at an overlap, or one for each column, and its error.

    ``(1/L) sum_ikl C_kl E Cov(T_ik, T_il | omega)`` with the covariance C of the tokens. The
    covariance of the labels is half the mean product of the differences between two draws of h that
    share omega.
    """
    length, t = model.length, model.teacher_rank
    scale = np.asarray(model.sigma)[:, None]
    shared, independent = np.sqrt(overlap), np.sqrt(1 - overlap)
    values = []
    for points in _points(3 * length * t, seed):
        a, z, other = np.moveaxis(points.reshape(-1, 3, length, t), 1, 0)
        fields = (model.mix(scale * (shared * a + independent * noise)) for noise in (z, other))
        first, second = (np.asarray(call_many(model.teacher, h)) for h in fields)
        spread = np.einsum("nik,nil->kl", first - second, first - second) / len(points)
        values.append(0.5 * np.sum(spread * model.covariance) / length)
    return mean_and_error(values)


@lru_cache(maxsize=4)
def _points(dims: int, seed: int) -> tuple[Float[np.ndarray, "n dims"], ...]:
    children = np.random.SeedSequence([seed, 2]).spawn(N_SCRAMBLES)
    return tuple(
        normal_points(dims, 2**LOG2_POINTS, np.random.default_rng(child)) for child in children
    )
