"""The effective loss landscape: the least training loss at prescribed overlaps m and theta.

Among the students with ``m = Q.p_1/sqrt d`` and ``theta = sigma_1^2 Q.Q*/d`` prescribed,

    f(m, theta) = min of (training loss)/d.

The components of Q along ``p_1`` and along Q* are then given, and only the rest is free. State
evolution is that of `dotphase.theory.evolution` with m and theta held: the fields use the
prescribed ``m_l = u_l m`` and ``theta_l = sigma_l^2 t``, ``t = theta/sigma_1^2``, and q and V
alone iterate (rank one; ``P_kl = P_11 u_k u_l`` of rank one; Q* orthogonal to the positions),

    R = 1/(ridge + sum_l sigma_l^2 Vhat_l),
    W = t^2 + m^2/P_11 + R^2 sum_l sigma_l^2 qhat_l,   q_l = sigma_l^2 W,   V_l = sigma_l^2 R,

and ``f = alpha E[ell(X; T)] + (ridge/2) W``. The forces that hold the two components are its
slopes, known without differences because the free energy is stationary in all the rest:

    df/dm = m/(P_11 R) - sum_l u_l mhat_l,   df/dt = t/R - sum_l sigma_l^2 thetahat_l.

They vanish exactly at the fixed points of the free state evolution: its branches are the
stationary points of this landscape.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from dotphase._numerics import validate
from dotphase._numerics.fixed_point import FixedPoint, Iteration, fixed_point
from dotphase._numerics.precision import in_double_precision
from dotphase._numerics.prox import Track
from dotphase.errors import InvalidInput
from dotphase.model.definition import Model, refuse_spectrum
from dotphase.theory.evaluate import Evaluator, Query
from dotphase.theory.evolution import Averages, conjugates, resolvent
from dotphase.theory.jobs import Job, run
from dotphase.theory.overlaps import Conjugates, Overlaps
from dotphase.theory.settings import check_alpha

#: log2 of the Gaussian points: the smallest quadrature, enough for a picture.
POINTS = 12
#: log of the part of W that is neither along p_1 nor along Q*, and of R, where nothing better is
#: known.
FRESH = np.log([0.1, 40.0])

#: Smallest factor by which one step may change 1/R, and what is sent where a step is undefined.
SHRINK, NOWHERE = 0.25, np.full(2, np.nan)

Vector = Float[np.ndarray, " n"]
Grid = Sequence[float] | Vector


@dataclass(frozen=True)
class Landscape:
    """The least training loss per dimension on a grid of m and theta.

    Attributes
    ----------
    model, alpha : of what
    m, theta : the grid
    loss : f(m, theta); NaN where the iteration did not settle
    slope_m, slope_theta : its derivatives
    q, V : of token 1
    """

    model: Model
    alpha: float
    m: Float[np.ndarray, " columns"]
    theta: Float[np.ndarray, " rows"]
    loss: Float[np.ndarray, "rows columns"]
    slope_m: Float[np.ndarray, "rows columns"]
    slope_theta: Float[np.ndarray, "rows columns"]
    q: Float[np.ndarray, "rows columns"]
    V: Float[np.ndarray, "rows columns"]

    @property
    def minima(self) -> list[tuple[float, float, float]]:
        """Cells no higher than their neighbours, as (m, theta, loss), the lowest first.

        The grid stands for one quadrant of a symmetric function, so an edge at zero is no
        edge; a cell at an outer edge is no minimum of the whole.
        """
        rows, columns = self.loss.shape
        filled = np.where(np.isfinite(self.loss), self.loss, np.inf)
        padded = np.pad(filled, 1, mode="reflect")
        shifts = [(i, j) for i in (0, 1, 2) for j in (0, 1, 2) if (i, j) != (1, 1)]
        lowest = np.all(
            [filled <= padded[i : i + rows, j : j + columns] for i, j in shifts], axis=0
        )
        lowest &= np.isfinite(filled)
        lowest[-1, :] = lowest[:, -1] = False
        found = [
            (float(self.m[j]), float(self.theta[i]), float(self.loss[i, j]))
            for i, j in np.argwhere(lowest)
        ]
        return sorted(found, key=lambda cell: cell[2])


@in_double_precision
def landscape(
    model: Model,
    alpha: float,
    m: Grid,
    theta: Grid,
    *,
    log2_points: int = POINTS,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Landscape:
    """The effective landscape on a grid.

    Parameters
    ----------
    model : Model
        Student and teacher of rank one, positional Gram matrix of rank one.
    alpha : float
        Samples per dimension.
    m, theta : sequences of float
        Overlaps of token 1 to prescribe; increasing.
    log2_points : int
        log2 of the Gaussian points.
    seed : int
        Their seed.
    progress : callable, optional
        Called with the number of each row of theta as it is finished.
    """
    jobs = landscape_rows(model, alpha, m, theta, log2_points=log2_points, seed=seed)
    done = 0

    def report(_: np.ndarray) -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done)

    return assemble(model, alpha, m, theta, run(jobs, progress=report))


def landscape_rows(
    model: Model,
    alpha: float,
    m: Grid,
    theta: Grid,
    *,
    log2_points: int = POINTS,
    seed: int = 0,
) -> list[Job[Float[np.ndarray, "columns 5"]]]:
    """One job per row of theta, for a caller who wants to run them in steps of its own."""
    alpha = check_alpha(alpha)
    refuse_spectrum(model, "the landscape")
    if model.student_rank != 1 or model.teacher_rank != 1:
        ranks = (model.student_rank, model.teacher_rank)
        raise InvalidInput("ranks of student and teacher", ranks, "must both be 1")
    gram = np.asarray(model.positions)
    if gram[0, 0] <= 0 or not np.allclose(gram, np.outer(gram[0], gram[0]) / gram[0, 0]):
        raise InvalidInput(
            "positions", gram.tolist(), "must be of rank one with p_1 different from zero"
        )
    columns, rows = _grid("m", m), _grid("theta", theta)
    log2_points = validate.whole("log2_points", log2_points, at_least=12, at_most=24)
    seed = validate.whole("seed", seed, at_least=0)
    return [_row(model, alpha, columns, float(value), log2_points, seed) for value in rows]


def assemble(
    model: Model,
    alpha: float,
    m: Grid,
    theta: Grid,
    rows: Sequence[Float[np.ndarray, "columns 5"]],
) -> Landscape:
    """The landscape from the results of its rows."""
    values = np.moveaxis(np.asarray(rows), -1, 0)
    return Landscape(model, float(alpha), np.asarray(m), np.asarray(theta), *values)


def _grid(field: str, values: Grid) -> np.ndarray:
    grid = np.asarray(values, dtype=np.float64)
    if grid.ndim != 1 or grid.size == 0 or not np.all(np.isfinite(grid)):
        raise InvalidInput(field, values, "must be finite numbers")
    if not np.all(np.diff(grid) > 0):
        raise InvalidInput(field, values, "must be increasing numbers")
    return grid


def _row(
    model: Model, alpha: float, columns: np.ndarray, theta: float, log2_points: int, seed: int
) -> Job[Float[np.ndarray, "columns 5"]]:
    """The landscape along m at one theta, each point started from its neighbour."""
    place = _Place(model, alpha, theta, log2_points, seed)
    start = FRESH
    results = []
    for m in columns:
        # From the neighbour's point; where that fails, as if nothing were known, and at last
        # with short damped steps, which cross the jumps of the proximal map.
        for x, iteration in (
            (start, place.iteration),
            (FRESH, place.iteration),
            (FRESH, place.slow),
        ):
            point = yield from place.settle(float(m), x, iteration)
            if point.outcome.success:
                break
        if point.outcome.success:
            start = point.x
            results.append((yield from place.measure(float(m), point.x)))
        else:
            start = FRESH
            results.append(np.full(5, np.nan))
    return np.asarray(results)


class _Place:
    """State evolution of the rest of Q at one theta; x = log of (its part of W, R)."""

    def __init__(
        self, model: Model, alpha: float, theta: float, log2_points: int, seed: int
    ) -> None:
        self.model, self.alpha, self.theta = model, alpha, theta
        self.log2_points, self.seed = log2_points, seed
        self.evaluator = Evaluator(model)
        self.tracks: tuple[Track, ...] | None = None
        self.calls = 0
        gram = np.asarray(model.positions)
        self.pattern, self.length = gram[0] / gram[0, 0], float(gram[0, 0])
        self.t = theta / float(model.rho[0])
        noise = 2.0 ** (1 - log2_points)
        self.iteration = Iteration(tolerance=max(1e-4, noise), floor=20 * noise, limit=80)
        self.slow = replace(self.iteration, memory=0, step=0.15, limit=200)

    def given(self, m: float) -> float:
        """The prescribed part of W, ``t^2 + m^2/P_11``."""
        return self.t**2 + m**2 / self.length

    def overlaps(self, m: float, x: Vector) -> Overlaps:
        rho = np.asarray(self.model.rho)[:, None, None]
        rest, inverse = np.exp(x)
        return Overlaps(
            q=rho * (self.given(m) + rest),
            m=m * self.pattern[:, None],
            V=rho * inverse,
            theta=rho * self.t,
        )

    def ask(self, m: float, x: Vector) -> Job[tuple[Overlaps, Averages, Conjugates]]:
        overlaps = self.overlaps(m, x)
        query = Query(
            self.evaluator, overlaps, self.log2_points, self.seed, self.tracks, self.calls
        )
        answer = yield query
        self.tracks, self.calls = answer.tracks, self.calls + 1
        return overlaps, answer.mean, conjugates(self.model, self.alpha, overlaps, answer.mean)

    def settle(self, m: float, x: Vector, iteration: Iteration) -> Job[FixedPoint]:
        """The fixed point at one m, from x."""
        solver = fixed_point(x, np.ones_like, _reasonable, iteration)
        x = next(solver)
        try:
            while True:
                _, _, hats = yield from self.ask(m, x)
                # Far from the fixed point 1/R can come out negative: it shrinks by a bounded
                # factor instead, which leaves the fixed point where it is.
                stiffness = max(1 / self._resolvent(hats), SHRINK / float(np.exp(x[1])))
                rest = self._noise(hats) / stiffness**2
                x = solver.send(np.log([rest, 1 / stiffness]) if rest > 0 else NOWHERE)
        except StopIteration as end:
            found: FixedPoint = end.value
            return found

    def measure(self, m: float, x: Vector) -> Job[Float[np.ndarray, " 5"]]:
        """Loss, its two slopes, q and V at a fixed point.

        The loss is taken from the free energy, whose error is second order in that of x:
        ``alpha E[M] + sum_l (V_l qhat_l - q_l Vhat_l)/2 - R/2 sum_l sigma_l^2 qhat_l
        + (t^2 + m^2/P_11)/(2 R)``; at the fixed point it equals the training loss.
        """
        overlaps, averages, hats = yield from self.ask(m, x)
        inverse, noise = self._resolvent(hats), self._noise(hats)
        paired = float(np.sum(overlaps.V * hats.qhat - overlaps.q * hats.Vhat))
        loss = self.alpha * float(averages.moreau) + paired / 2
        loss += self.given(m) / (2 * inverse) - inverse * noise / 2
        pull = float(self.pattern @ hats.mhat[:, 0])
        lift = float(np.asarray(self.model.rho) @ hats.thetahat[:, 0, 0])
        slope_m = m / (self.length * inverse) - pull
        slope_theta = (self.t / inverse - lift) / float(self.model.rho[0])
        q, v = float(overlaps.q[0, 0, 0]), float(overlaps.V[0, 0, 0])
        return np.asarray([loss, slope_m, slope_theta, q, v])

    def _resolvent(self, hats: Conjugates) -> float:
        return float(resolvent(self.model, hats)[0, 0, 0])

    def _noise(self, hats: Conjugates) -> float:
        return float(np.asarray(self.model.rho) @ hats.qhat[:, 0, 0])


def _reasonable(x: Vector) -> bool:
    """Whether the logarithms are finite and far from overflow."""
    return bool(np.all(np.isfinite(x)) and np.all(np.abs(x) < 60))
