"""Response multipliers: factors of one state-evolution step on small changes of the overlaps.

A fixed point is a minimum of the training loss only if no change of its overlaps lowers the
loss. With the response R, and with what W = Q^T Q/d has besides its part along Q* and the
directions, at their best for given alignments a = (theta, m), the least loss f(a) has the second
derivative

    f''(a) = D (1 - M),   M = J_aa + J_ab (1 - J_bb)^{-1} J_ba,

with J the Jacobian of one step in the coordinates (a, b), b being these two, and D positive: at a
saddle M has an eigenvalue above one. (W as a whole would not do for b: one step gives it the new
alignments, not those that f(a) is asked at.) Directions that a symmetry holds at zero (theta on
the positional branch, m on the semantic one, all of an idle column) are among them. Eigenvalues
below -1 make the plain iteration oscillate and say nothing about the loss.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from dotphase.numerics.fixed_point import Vector
from dotphase.numerics.quadrature import MIN_QUADRATURE_LOG2
from dotphase.numerics.statistics import jackknife_error
from dotphase.theory.fixed_point_map import StateEvolutionMap
from dotphase.theory.newton import Jacobian, finite_differences
from dotphase.theory.overlaps import Conjugates
from dotphase.theory.point_evaluator import EvaluatedPoint, PointEvaluator
from dotphase.theory.responses import Responses
from dotphase.theory.stability import TOWARDS, Multipliers
from dotphase.theory.state_evolution import next_overlaps


def step_jacobian(
    fixed_point_map: StateEvolutionMap, x: Vector, hats: Conjugates, slopes: Conjugates
) -> Float[np.ndarray, "scrambles n n"]:
    """The Jacobian of one step in all coordinates but those of V, whose columns are left NaN.

    From the conjugates at x, and their derivatives over alpha
    (`dotphase.theory.density_derivatives`).
    """
    coordinates, model, alpha = (
        fixed_point_map.coordinates,
        fixed_point_map.model,
        fixed_point_map.alpha,
    )
    columns = np.flatnonzero(~coordinates.part("V"))
    steps = 1e-4 * coordinates.scale(x)[columns]
    jacobian = np.full((len(slopes.mhat), x.size, x.size), np.nan)

    def moved(sign: float) -> Float[np.ndarray, "scrambles columns n"]:
        hats_moved = (
            hat + sign * alpha * steps.reshape(-1, *[1] * np.ndim(hat)) * np.asarray(part)
            for hat, part in zip(hats, slopes, strict=True)
        )
        return coordinates.pack(next_overlaps(model, Conjugates(*hats_moved)))

    # The algebra after the averages is smooth: a central difference is exact enough.
    change = (moved(1.0) - moved(-1.0)) / (2 * steps[:, None])
    jacobian[:, :, columns] = change.swapaxes(1, 2)
    return jacobian


def full_jacobian(
    evaluator: PointEvaluator[StateEvolutionMap],
    point: EvaluatedPoint,
    jacobian: Jacobian | None,
    responses: Responses,
) -> Float[np.ndarray, "scrambles n n"]:
    """The Jacobian of one step in all coordinates, fixed ones included, from each scramble.

    The columns of V come from the Jacobian in the free coordinates (finite differences).
    """
    fixed_point_map, x = evaluator.map, point.x
    hats = fixed_point_map.conjugates(point.overlaps, point.mean)
    full = step_jacobian(fixed_point_map, x, hats, responses.slopes)
    in_V = fixed_point_map.coordinates.part("V")
    if jacobian is not None:
        free = jacobian.free
        columns = free[in_V[free]]
        full[:, :, columns] = 0.0
        full[np.ix_(np.arange(len(full)), free, columns)] = jacobian.matrix[:, in_V[free]]
    fixed = np.flatnonzero(in_V & fixed_point_map.fixed)
    if fixed.size:
        unconstrained = PointEvaluator(
            fixed_point_map.unconstrained, evaluator.settings, evaluator.warm_start
        )
        level = max(point.log2_points - 2, MIN_QUADRATURE_LOG2)
        differences = finite_differences(unconstrained, x, level, fixed)
        if differences is not None:
            full[:, :, fixed] = differences[0]
    return full


def measure_multipliers(
    fixed_point_map: StateEvolutionMap, x: Vector, jacobian: Float[np.ndarray, "scrambles n n"]
) -> Multipliers:
    """The multipliers and their jackknife errors, from the Jacobians of the scrambles.

    Directions of different symmetry do not mix. Rotations of columns that leave the model unchanged
    are left out.
    """
    coordinates = fixed_point_map.coordinates
    scale = coordinates.scale(x)
    relative = _without_parallel_weight(fixed_point_map, x, jacobian) * scale / scale[:, None]
    rotations = coordinates.rotations(x) / scale
    theta = coordinates.part("theta")
    aligned = theta | coordinates.part("m")
    count = len(relative)
    mean = np.mean(relative, axis=0)
    without_one = (count * mean - relative) / (count - 1)
    jackknife = np.concatenate([mean[None], without_one])
    largest = np.full((1 + count, len(TOWARDS)), -np.inf)
    for sector in coordinates.sectors(x):
        a, b = (np.flatnonzero(sector & part) for part in (aligned, ~aligned))
        both = np.r_[a, b]
        if a.size and np.isfinite(mean[np.ix_(both, both)]).all():
            keep = _complement(rotations[:, a])
            largest = np.maximum(largest, _largest(jackknife, a, b, keep, theta[a]))
    rows = {name: row for name, row in zip(TOWARDS, largest.T, strict=True) if row[0] > -np.inf}
    return Multipliers(
        {name: float(row[0]) for name, row in rows.items()},
        {name: float(jackknife_error(row[1:])) for name, row in rows.items()},
    )


def _without_parallel_weight(
    fixed_point_map: StateEvolutionMap, x: Vector, jacobian: Float[np.ndarray, "scrambles n n"]
) -> Float[np.ndarray, "scrambles n n"]:
    """The Jacobian in coordinates with W without its part along Q* and the directions."""
    coordinates = fixed_point_map.coordinates
    q = np.flatnonzero(coordinates.part("q"))
    a = np.flatnonzero(coordinates.part("theta") | coordinates.part("m"))
    gradient = coordinates.parallel_weight_gradient(x)
    transformed = jacobian.copy()
    transformed[:, :, a] += jacobian[:, :, q] @ gradient
    transformed[:, q, :] -= gradient @ transformed[:, a, :]
    return transformed


def _largest(
    jacobians: Float[np.ndarray, "k n n"],
    a: np.ndarray,
    b: np.ndarray,
    keep: Float[np.ndarray, "a kept"],
    theta: np.ndarray,
) -> Float[np.ndarray, "k 2"]:
    """Largest eigenvalue of ``J_aa + J_ab (1 - J_bb)^{-1} J_ba`` in theta, and in m."""
    rows, columns = jacobians[:, a], jacobians[:, b]
    try:
        through = np.linalg.solve(np.eye(b.size) - columns[:, :, b], columns[:, :, a])
        effective = rows[:, :, a] + rows[:, :, b] @ through
        values, vectors = np.linalg.eig(keep.T @ effective @ keep)
    except np.linalg.LinAlgError:
        if len(jacobians) == 1:
            return np.full((1, 2), np.nan)
        alone = (_largest(one[None], a, b, keep, theta) for one in jacobians)
        return np.concatenate(list(alone))
    weight = np.abs(keep @ vectors) ** 2
    mostly = np.sum(weight[:, theta], axis=1) > np.sum(weight[:, ~theta], axis=1)
    both = [np.where(mask, values.real, -np.inf) for mask in (mostly, ~mostly)]
    return np.stack([np.max(each, axis=1, initial=-np.inf) for each in both], axis=1)


def _complement(directions: Float[np.ndarray, "k a"]) -> Float[np.ndarray, "a kept"]:
    """Orthonormal basis of the space orthogonal to the nonzero directions."""
    _, sizes, basis = np.linalg.svd(directions, full_matrices=True)
    return basis[np.count_nonzero(sizes > 1e-6) :].T
