r"""State evolution of regularized attention of extensive rank.

The student ``S = Q Q^T`` minimizes ``sum_mu l_mu + ridge d Tr S`` over ``n = alpha d^2`` sentences.
The output side (`score_channel`) has the averages over the scores of one sentence, the matrix side
(`spectral_density`) those over the eigenvalues of S:

    (vhat, mhat, chihat) = alpha (stiffness, signal, noise)(q, m, V, u),
    (q, m, V) = overlaps of (mhat S* + sqrt(chihat) Z - ridge)_+ / vhat,      E l'(u) = 0.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from dotphase.config import validation
from dotphase.config.formatting import LABELS, Description, format_value
from dotphase.extensive import QUANTITIES
from dotphase.extensive.score_channel import QuadraticChannel, ScoreAverages, ScoreChannel, rules
from dotphase.extensive.spectral_density import Overlaps, bands, spectral_density, thresholded
from dotphase.numerics.fixed_point import FixedPoint, Iteration, fixed_point
from dotphase.storage.results import Result

Channel = ScoreChannel | QuadraticChannel
#: The unknowns (log q, log m, log V, u).
Unknowns = Float[np.ndarray, "4"]

#: Accuracy of the fixed point.
ITERATION = Iteration(tolerance=1e-9, floor=1e-7, step=1.0, max_steps=300)
#: Largest change of log q, log m, log V and u in one step.
MAX_CHANGE = 2.0
#: Largest share of sentences without a converged proximal point in a converged solution.
MAX_UNSETTLED = 1e-3
#: Newton steps to the best positional shift, the last of which is shorter than a tolerance.
SHIFT_STEPS, SHIFT_TOLERANCE = 8, 1e-12
#: Largest weight of the positional part.
MAX_OMEGA = 0.999


@dataclass(frozen=True, eq=False, repr=False)
class WidePoint:
    """Parameters of data, teacher and penalty."""

    alpha: float
    rho: float
    ridge: float
    length: int
    omega: float


class WideResult(Result):
    """Numbers of wide attention; `stderr` has their errors."""

    stderr: dict[str, float]

    @property
    def mean(self) -> dict[str, float]:
        """The numbers by name; means over students after training."""
        return {name: float(np.mean(getattr(self, name))) for name in self.stderr}

    def describe(self, title: str, *notes: str) -> Description:
        """Return the parameters and every number with its error."""
        names = ("alpha", "rho", "ridge", "length", "omega", "d")
        values = {name: getattr(self, name) for name in names if hasattr(self, name)}
        title += " at " + ", ".join(f"{name} = {value:g}" for name, value in values.items())
        rows = []
        for name, value in self.mean.items():
            error = self.stderr[name]
            short = 0 < error < 1e-6 * abs(value)
            text = f"{value:.6g} ± {error:.1g}" if short else format_value(value, error)
            rows.append((LABELS.get(name, name), text))
        return Description(title, tuple(rows), notes)


@dataclass(frozen=True, eq=False, repr=False)
class WideSolution(WidePoint, WideResult):
    """Fixed point of the state evolution of a student of extensive rank.

    Attributes
    ----------
    alpha, rho, ridge, length, omega : the request; ``n = alpha d^2`` sentences of `length` tokens
    q, m, V : ``tr S^2/d``, ``tr S S*/d`` and the response
    trace, rank : ``tr S/d`` and the fraction of positive eigenvalues
    shift : difference of scores of a token with itself and with another, made by positions alone
    train_loss : minimum of the training loss divided by d^2
    test_error : ``sum_ab (T - S)_ab^2/L`` on fresh sentences
    converged, residual, iterations : state of the fixed-point iteration
    stderr : half the spread over point sets for two tokens, standard error for more, and the
        residual of the iteration
    force : ``vhat, mhat, chihat``; S has the spectrum ``(mhat S* + sqrt(chihat) Z - ridge)_+/vhat``
    seconds : wall time

    Examples
    --------
    >>> solution = dp.wide.solve(alpha=0.7, rho=0.5, ridge=0.1)
    >>> round(solution.test_error, 5)
    0.02595
    """

    long_names: ClassVar = QUANTITIES

    q: float
    m: float
    V: float
    trace: float
    rank: float
    shift: float
    train_loss: float
    test_error: float
    converged: bool
    residual: float
    iterations: int
    stderr: dict[str, float]
    force: tuple[float, float, float] = field(repr=False)
    seconds: float

    def spectrum(
        self, points: int = 400
    ) -> tuple[Float[np.ndarray, " x"], Float[np.ndarray, " x"]]:
        """Positive eigenvalues of S, and their density, which integrates to `rank`.

        Every band of eigenvalues has this number of points, which are denser at its edges.

        Examples
        --------
        >>> eigenvalues, density = dp.wide.solve(alpha=0.7, rho=0.5, ridge=0.1).spectrum()
        >>> bool((density >= 0).all())
        True
        """
        vhat, mhat, chihat = self.force
        spectrum = spectral_density(mhat, float(np.sqrt(chihat)), self.rho, self.ridge, points)
        return (spectrum.x - self.ridge) / vhat, spectrum.density * vhat

    @property
    def description(self) -> Description:
        """Overlaps and losses with their errors, and whether S has a semantic part."""
        title = ("" if self.converged else "NOT CONVERGED: ") + "wide attention"
        below = "S = 0: below the onset of the semantic part"
        return self.describe(title, "semantic: S > 0, above the onset" if self.rank else below)


def check_point(alpha: float, rho: float, ridge: float, length: int, omega: float) -> WidePoint:
    """Check the arguments that all functions of this package share."""
    length = validation.integer("length", length, at_least=1, at_most=3)
    return WidePoint(
        validation.number("alpha", alpha, at_least=1e-9),
        validation.number("rho", rho, at_least=1e-3, at_most=1e3),
        validation.number("ridge", ridge, at_least=1e-6, at_most=1e3),
        length,
        validation.number("omega", omega, at_least=0, at_most=MAX_OMEGA if length > 1 else 0),
    )


def channels(point: WidePoint) -> list[Channel]:
    """The output side on all point sets."""
    if point.length == 1:
        return [QuadraticChannel(1 + point.rho)]
    sets = rules(point.length, mirrored=point.omega == 0)
    return [ScoreChannel(point.length, point.omega, 1 + point.rho, rule) for rule in sets]


def solve(
    *, alpha: float, rho: float, ridge: float, length: int = 2, omega: float = 0.0
) -> WideSolution:
    """Solve the state evolution of a student ``S = Q Q^T`` of unrestricted width.

    Parameters
    ----------
    alpha : float
        Sentences per squared dimension, n/d^2.
    rho : float
        Width of the teacher over d: ``S* = W W^T/(d sqrt rho)``, W of shape (d, rho d).
    ridge : float
        Penalty ``ridge d |Q|^2``.
    length : {2, 3, 1}
        Tokens of a sentence; 1 for a quadratic network, whose labels are the scores.
    omega : float in [0, 1)
        Weight of the positional part of the teacher.

    Examples
    --------
    >>> solution = dp.wide.solve(alpha=0.3, rho=0.5, ridge=0.2, omega=0.3)
    >>> round(solution.shift, 4)
    0.1154
    """
    start = time.perf_counter()
    point = check_point(alpha, rho, ridge, length, omega)
    rows, iterations = [], []
    Q = 1 + rho
    y: Unknowns = np.append(np.log([0.05 * Q, 0.1 * Q, 0.1 / ridge]), 0.0)
    for channel in channels(point):
        overlaps = empty_overlaps(channel, omega)
        if upper_edge(alpha, channel.averages(overlaps), rho) > ridge:
            iterations.append(_iterate(point, channel, y))
            y = iterations[-1].x
            overlaps = _overlaps(y)
        rows.append(_measure(point, channel, overlaps))
    table = {name: [row[name] for row in rows] for name in rows[0]}
    mean: dict[str, Any] = {name: float(np.mean(values)) for name, values in table.items()}
    residual = max((iteration.residual for iteration in iterations), default=0.0)
    # The two halves of a lattice err in opposite directions.
    shrink = 1 / np.sqrt(len(rows)) if length > 2 else 0.5
    spread = {name: shrink * np.std(table[name], ddof=len(rows) > 1) for name in QUANTITIES}
    return WideSolution(
        **vars(point),
        **{name: mean[name] for name in QUANTITIES},
        converged=all(iteration.outcome.success for iteration in iterations)
        and max(table["unsettled"]) < MAX_UNSETTLED,
        residual=residual,
        iterations=sum(iteration.iterations for iteration in iterations),
        stderr={name: float(spread[name] + residual * abs(mean[name])) for name in QUANTITIES},
        force=(mean["vhat"], mean["mhat"], mean["chihat"]),
        seconds=time.perf_counter() - start,
    )


def empty_overlaps(channel: Channel, omega: float) -> Overlaps:
    """The student without semantic part, ``S = 0``, at its best positional shift."""
    empty = Overlaps()
    for _ in range(SHIFT_STEPS if omega else 0):
        mean = channel.averages(empty)
        step = mean.force / mean.stiffness
        empty = empty._replace(shift=empty.shift - step)
        if abs(step) < SHIFT_TOLERANCE:
            break
    return empty


def upper_edge(alpha: float, mean: ScoreAverages, rho: float) -> float:
    """Largest eigenvalue of ``alpha mhat S* + sqrt(alpha chihat) Z``."""
    return bands(alpha * mean.mhat, float(np.sqrt(alpha * mean.chihat)), rho)[-1][1]


def _overlaps(y: Unknowns) -> Overlaps:
    return Overlaps(*np.exp(y[:3]).tolist())._replace(shift=float(y[3]))


def _matrix(point: WidePoint, mean: ScoreAverages) -> Overlaps:
    """Overlaps of the matrix S that averages over sentences lead to."""
    vhat, mhat, chihat = (point.alpha * each for each in mean[:3])
    return thresholded(vhat, mhat, chihat, point.ridge, point.rho)


def _iterate(point: WidePoint, channel: Channel, y: Unknowns) -> FixedPoint:
    """Iterate the equations on one point set."""

    def image(y: Unknowns) -> Unknowns:
        overlaps = _overlaps(y)
        mean = channel.averages(overlaps)
        shift = overlaps.shift - mean.force / mean.stiffness if point.omega else 0.0
        target = np.append(np.log(np.maximum(_matrix(point, mean)[:3], 1e-300)), shift)
        return y + np.clip(target - y, -MAX_CHANGE, MAX_CHANGE)

    return fixed_point(image, y, lambda y: np.ones(4), lambda y: True, ITERATION)


def _measure(point: WidePoint, channel: Channel, overlaps: Overlaps) -> dict[str, float]:
    """All numbers of a solution on one point set."""
    mean = channel.averages(overlaps)
    matrix = _matrix(point, mean)._replace(shift=overlaps.shift)
    return {
        **matrix._asdict(),
        "train_loss": point.alpha * mean.loss + point.ridge * matrix.trace,
        "test_error": 2 / point.length * channel.test_loss(overlaps),
        **{name: point.alpha * getattr(mean, name) for name in ("vhat", "mhat", "chihat")},
        "unsettled": mean.unsettled,
    }
