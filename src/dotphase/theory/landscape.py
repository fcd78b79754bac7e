"""The effective loss landscape: the least training loss at prescribed overlaps m and theta.

Among the students with ``m = Q.p_1/sqrt d`` and ``theta = sigma_1^2 Q.Q*/d`` prescribed,

    f(m, theta) = min of (training loss)/d.

The components of Q along ``p_1`` and along Q* are then given, and only the rest is free. State
evolution is that of `dotphase.theory.state_evolution` with m and theta held: the fields use the
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
from functools import partial
from typing import ClassVar, Unpack

import numpy as np
from jaxtyping import Bool, Float

from dotphase.config import validation
from dotphase.model.definition import Model, refuse_spectrum
from dotphase.numerics.fixed_point import Iteration, Vector
from dotphase.runtime.precision import in_double_precision
from dotphase.runtime.progress import Progress
from dotphase.storage.results import Result
from dotphase.theory.driver import run_all
from dotphase.theory.fixed_point_map import ReplicaSymmetricMap
from dotphase.theory.overlaps import Conjugates, Overlaps
from dotphase.theory.parameter_continuation import ParameterContinuation
from dotphase.theory.plane import Plane
from dotphase.theory.point_evaluator import EvaluatedPoint
from dotphase.theory.responses import Responses
from dotphase.theory.settings import SolverFields, SolverSettings, check_alpha, with_changes
from dotphase.theory.stability import weight_of_jumps
from dotphase.theory.state_evolution import resolvent

#: How precisely to solve where nothing else is said: the smallest quadrature, enough for a
#: picture.
SETTINGS = SolverSettings(log2_points=12)
#: Initialization: log of the part of W that is neither along p_1 nor along Q*, and of R.
INITIAL = np.log([0.1, 40.0])
#: Weight of the jumps up to which replica symmetry is believed here: away from a minimum the
#: change by breaking it is not known.
FEW_JUMPS = 0.2
#: Smallest factor by which one step may change 1/R.
SHRINK = 0.25

Grid = Sequence[float] | Vector
#: Loss, its two slopes, q, V and the weight of the jumps at the points of one row.
RowValues = Float[np.ndarray, "columns 6"]


@dataclass(frozen=True, eq=False, repr=False)
class Landscape(Result):
    """The least training loss per dimension on a grid of m and theta.

    Attributes
    ----------
    model, alpha : of what
    m, theta : the grid
    loss : f(m, theta); NaN where the iteration did not settle
    slope_m, slope_theta : its derivatives
    q, V : of token 1
    jump_weight : share of the response carried by jumps of the proximal map: the landscape is
        replica symmetric, and the larger this is the less it says

    Examples
    --------
    >>> surface = dp.analysis.landscape(dp.positional_semantic(), 2.0, [0.0, 0.2], [0.0, 0.1])
    >>> surface.m.tolist()
    [0.0, 0.2]
    """

    dimensions: ClassVar = {"m": ("m",), "theta": ("theta",)} | dict.fromkeys(
        ("loss", "slope_m", "slope_theta", "q", "V", "jump_weight"), ("theta", "m")
    )

    model: Model
    alpha: float
    m: Float[np.ndarray, " columns"]
    theta: Float[np.ndarray, " rows"]
    loss: Float[np.ndarray, "rows columns"]
    slope_m: Float[np.ndarray, "rows columns"]
    slope_theta: Float[np.ndarray, "rows columns"]
    q: Float[np.ndarray, "rows columns"]
    V: Float[np.ndarray, "rows columns"]
    jump_weight: Float[np.ndarray, "rows columns"]

    @property
    def trusted(self) -> Bool[np.ndarray, "rows columns"]:
        """Cells with few enough jumps for replica symmetry to hold."""
        return self.jump_weight < FEW_JUMPS

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
        cells = [
            (float(self.m[j]), float(self.theta[i]), float(self.loss[i, j]))
            for i, j in np.argwhere(lowest)
        ]
        return sorted(cells, key=lambda cell: cell[2])


@in_double_precision
def landscape(
    model: Model,
    alpha: float,
    m: Grid,
    theta: Grid,
    *,
    progress: Progress = None,
    settings: SolverSettings | None = None,
    **changes: Unpack[SolverFields],
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
    progress : bool or callable, optional
        Receives an event for each row of theta (`dotphase.results.ProgressEvent`).
    settings, **changes
        As for `dotphase.solve`; `log2_points`, 12 by default, has to be fixed.

    Examples
    --------
    >>> surface = dp.analysis.landscape(dp.positional_semantic(), 2.0, [0.0, 0.2], [0.0, 0.1])
    >>> surface.loss.shape
    (2, 2)
    """
    settings = with_changes(settings, SETTINGS, changes)
    jobs = landscape_rows(model, alpha, m, theta, settings)
    return assemble(model, alpha, m, theta, run_all(jobs, "landscape", progress))


def landscape_rows(
    model: Model, alpha: float, m: Grid, theta: Grid, settings: SolverSettings = SETTINGS
) -> list[Callable[[], RowValues]]:
    """Check the arguments and return a function for each row of theta."""
    refuse_spectrum(model, "the landscape")
    alpha, plane, log2_points = check_alpha(alpha), Plane.of(model), settings.fixed_points
    columns, rows = validation.grid("m", m), validation.grid("theta", theta)
    maps = [
        PrescribedOverlapsMap(model, alpha, plane, 0.0, float(value) / plane.rho) for value in rows
    ]
    return [partial(_solve_row, row_map, columns, settings, log2_points) for row_map in maps]


def assemble(
    model: Model, alpha: float, m: Grid, theta: Grid, rows: Sequence[RowValues]
) -> Landscape:
    """The landscape from the results of its rows."""
    values = np.moveaxis(np.asarray(rows), -1, 0)
    return Landscape(model, float(alpha), np.asarray(m), np.asarray(theta), *values)


def _solve_row(
    first: PrescribedOverlapsMap, columns: np.ndarray, settings: SolverSettings, log2_points: int
) -> RowValues:
    """Solve along m at one theta, each point from its neighbor."""
    noise = 2.0 ** (1 - log2_points)
    usual = settings.iteration or Iteration(max(1e-4, noise), floor=20 * noise, max_steps=80)
    # Short damped steps, tried last, cross the jumps of the proximal map.
    damped = replace(usual, anderson_depth=0, step=0.15, max_steps=200)
    continuation = ParameterContinuation(
        lambda m: replace(first, m=m), replace(settings, iteration=usual), log2_points, log2_points
    )
    results = []
    for m in map(float, columns):
        point = continuation.solve_at(m, INITIAL)
        if not point.fixed_point.outcome.success:
            point = continuation.iterate_at(m, INITIAL, damped)
        values = np.full(6, np.nan)
        if point.fixed_point.outcome.success:
            values = replace(first, m=m).measure(point.evaluated, point.evaluated.responses())
        results.append(values)
    return np.asarray(results)


@dataclass(frozen=True, eq=False)
class PrescribedOverlapsMap(ReplicaSymmetricMap):
    """State evolution of the rest of Q at given m and t; x = log of (its part of W, R)."""

    plane: Plane
    m: float
    t: float

    def overlaps(self, x: Vector) -> Overlaps:
        rho = np.asarray(self.model.rho)[:, None, None]
        rest, inverse = np.exp(x)
        return Overlaps(
            q=rho * (self.plane.weight(self.m, self.t) + rest),
            m=self.m * self.plane.pattern[:, None],
            V=rho * inverse,
            theta=rho * self.t,
        )

    def image(self, x: Vector, hats: Conjugates) -> Vector:
        # Far from the fixed point 1/R can come out negative: it shrinks by a bounded
        # factor instead, which leaves the fixed point where it is.
        stiffness = max(1 / self._resolvent(hats), SHRINK / float(np.exp(x[1])))
        rest = self._noise(hats) / stiffness**2
        return np.log([rest, 1 / stiffness]) if rest > 0 else np.full(2, np.nan)

    def scale(self, x: Vector) -> Vector:
        return np.ones_like(x)

    def admissible(self, x: Vector) -> bool:
        """True if the logarithms are finite and far from overflow."""
        return bool(np.all(np.isfinite(x)) and np.all(np.abs(x) < 60))

    def measure(self, point: EvaluatedPoint, responses: Responses) -> Float[np.ndarray, " 6"]:
        """Loss, its two slopes, q, V and the weight of the jumps at a fixed point.

        The loss is taken from the free energy, whose error is second order in that of x:
        ``alpha E[M] + sum_l (V_l qhat_l - q_l Vhat_l)/2 - R/2 sum_l sigma_l^2 qhat_l
        + (t^2 + m^2/P_11)/(2 R)``; at the fixed point it equals the training loss.
        """
        overlaps, plane = point.overlaps, self.plane
        hats = self.conjugates(overlaps, point.mean)
        inverse, noise = self._resolvent(hats), self._noise(hats)
        paired = float(np.sum(overlaps.V * hats.qhat - overlaps.q * hats.Vhat))
        loss = self.alpha * float(point.mean.moreau) + paired / 2
        loss += plane.weight(self.m, self.t) / (2 * inverse) - inverse * noise / 2
        pull = float(plane.pattern @ hats.mhat[:, 0])
        lift = float(np.asarray(self.model.rho) @ hats.thetahat[:, 0, 0])
        slope_m = self.m / (plane.length * inverse) - pull
        slope_theta = (self.t / inverse - lift) / plane.rho
        q, v = float(overlaps.q[0, 0, 0]), float(overlaps.V[0, 0, 0])
        weight = weight_of_jumps(self.model, self.alpha, hats, responses)
        return np.asarray([loss, slope_m, slope_theta, q, v, weight])

    def _resolvent(self, hats: Conjugates) -> float:
        return float(resolvent(self.model, hats)[0, 0, 0])

    def _noise(self, hats: Conjugates) -> float:
        return float(np.asarray(self.model.rho) @ hats.qhat[:, 0, 0])
