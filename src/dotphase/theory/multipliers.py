"""By how much one step of state evolution multiplies a small change of the overlaps.

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
from dotphase.numerics.quadrature import SMALLEST_LOG2
from dotphase.theory.driver import Steps
from dotphase.theory.fixed_point_map import Free
from dotphase.theory.overlaps import Conjugates
from dotphase.theory.point_iteration import Evaluation, Jacobian, Search, differences
from dotphase.theory.stability import TOWARDS, Multipliers, Responses
from dotphase.theory.state_evolution import next_overlaps


def step_slopes(
    problem: Free, x: Vector, hats: Conjugates, slopes: Conjugates
) -> Float[np.ndarray, "scrambles n n"]:
    """The Jacobian of one step in all coordinates but those of V, whose columns are left NaN.

    From the conjugates at x, and their derivatives over alpha
    (`dotphase.theory.density_derivatives`).
    """
    coordinates, model, alpha = problem.coordinates, problem.model, problem.alpha
    columns = np.flatnonzero(~coordinates.part("V"))
    steps = 1e-4 * coordinates.scale(x)[columns]
    jacobian = np.full((len(slopes.mhat), x.size, x.size), np.nan)

    def moved(sign: float) -> Float[np.ndarray, "scrambles columns n"]:
        there = (
            hat + sign * alpha * steps.reshape(-1, *[1] * np.ndim(hat)) * np.asarray(part)
            for hat, part in zip(hats, slopes, strict=True)
        )
        return coordinates.pack(next_overlaps(model, Conjugates(*there)))

    # What follows the averages is smooth algebra: a central difference is exact enough.
    change = (moved(1.0) - moved(-1.0)) / (2 * steps[:, None])
    jacobian[:, :, columns] = change.swapaxes(1, 2)
    return jacobian


def whole_jacobian(
    search: Search, here: Evaluation, jacobian: Jacobian | None, responses: Responses
) -> Steps[Float[np.ndarray, "scrambles n n"]]:
    """The Jacobian of one step in all coordinates, held or not, from each scramble.

    The columns of V are taken from that in the free coordinates, by differences.
    """
    problem, x = search.problem, here.x
    assert isinstance(problem, Free)
    hats = problem.conjugates(here.overlaps, here.mean)
    whole = step_slopes(problem, x, hats, responses.slopes)
    response = problem.coordinates.part("V")
    if jacobian is not None:
        free = jacobian.free
        columns = free[response[free]]
        whole[:, :, columns] = 0.0
        whole[np.ix_(np.arange(len(whole)), free, columns)] = jacobian.matrix[:, response[free]]
    held = np.flatnonzero(response & problem.held)
    if held.size:
        opened = Search(problem.opened, search.settings, search.memory)
        measured = yield from differences(opened, x, max(here.log2_points - 2, SMALLEST_LOG2), held)
        if measured is not None:
            whole[:, :, held] = measured[0]
    return whole


def multipliers(
    problem: Free, x: Vector, jacobian: Float[np.ndarray, "scrambles n n"]
) -> Multipliers:
    """The multipliers from the Jacobians that the scrambles give; errors by leaving one out.

    Directions that the symmetries tell apart do not mix; a turn of columns that the model does
    not see changes nothing, and is left out.
    """
    coordinates = problem.coordinates
    scale = coordinates.scale(x)
    relative = _apart(problem, x, jacobian) * scale / scale[:, None]
    turns = coordinates.turns(x) / scale
    theta = coordinates.part("theta")
    aligned = theta | coordinates.part("m")
    count = len(relative)
    whole = np.mean(relative, axis=0)
    without_one = (count * whole - relative) / (count - 1)
    every = np.concatenate([whole[None], without_one])
    found = np.full((1 + count, len(TOWARDS)), -np.inf)
    for sector in coordinates.sectors(x):
        a, b = (np.flatnonzero(sector & part) for part in (aligned, ~aligned))
        some = np.r_[a, b]
        if a.size and np.isfinite(whole[np.ix_(some, some)]).all():
            keep = _complement(turns[:, a])
            found = np.maximum(found, _largest(every, a, b, keep, theta[a]))
    there = {name: row for name, row in zip(TOWARDS, found.T, strict=True) if row[0] > -np.inf}
    return Multipliers(
        {name: float(row[0]) for name, row in there.items()},
        {name: _spread(row[1:]) for name, row in there.items()},
    )


def _apart(
    problem: Free, x: Vector, jacobian: Float[np.ndarray, "scrambles n n"]
) -> Float[np.ndarray, "scrambles n n"]:
    """The Jacobian in coordinates where W is less its part along Q* and the directions."""
    coordinates = problem.coordinates
    q = np.flatnonzero(coordinates.part("q"))
    a = np.flatnonzero(coordinates.part("theta") | coordinates.part("m"))
    along = coordinates.along(x)
    moved = jacobian.copy()
    moved[:, :, a] += jacobian[:, :, q] @ along
    moved[:, q, :] -= along @ moved[:, a, :]
    return moved


def _spread(others: Float[np.ndarray, " scrambles"]) -> float:
    """Jackknife error; NaN where leaving one out has left no such direction."""
    if not np.isfinite(others).all():
        return float("nan")
    return float(np.std(others) * np.sqrt(len(others) - 1))


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
        if len(jacobians) == 1:  # nothing is known of such a point
            return np.full((1, 2), np.nan)
        alone = (_largest(one[None], a, b, keep, theta) for one in jacobians)
        return np.concatenate(list(alone))
    weight = np.abs(keep @ vectors) ** 2
    mostly = np.sum(weight[:, theta], axis=1) > np.sum(weight[:, ~theta], axis=1)
    both = [np.where(some, values.real, -np.inf) for some in (mostly, ~mostly)]
    return np.stack([np.max(each, axis=1, initial=-np.inf) for each in both], axis=1)


def _complement(directions: Float[np.ndarray, "k a"]) -> Float[np.ndarray, "a kept"]:
    """An orthonormal basis of what is orthogonal to some directions; zero ones do not count."""
    _, sizes, basis = np.linalg.svd(directions, full_matrices=True)
    return basis[np.count_nonzero(sizes > 1e-6) :].T
