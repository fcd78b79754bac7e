r"""State evolution of regularized attention of extensive rank.

The student ``S = Q Q^T`` minimizes ``sum_mu l_mu + ridge d Tr S`` over ``n = alpha d^2`` sentences.
The output side (`score_channel`) has the averages over the scores of one sentence, the matrix side
(`spectral_density`) those over the eigenvalues of S:

    (vhat, mhat, chihat) = alpha (stiffness, signal, noise)(q, m, V, u),
    (q, m, V) = overlaps of (mhat S* + sqrt(chihat) Z - ridge)_+ / vhat,      E l'(u) = 0.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from dotphase.config import validation
from dotphase.config.formatting import LABELS, Description, format_value
from dotphase.config.serialization import fields_except
from dotphase.extensive.quadratic_channel import QuadraticChannel
from dotphase.extensive.score_channel import (
    Overlaps,
    ScoreAverages,
    ScoreChannel,
    coarse_rule,
    rules,
)
from dotphase.extensive.spectral_density import MatrixOverlaps, bands, resolvent, thresholded
from dotphase.numerics.fixed_point import FixedPoint, Iteration, fixed_point
from dotphase.numerics.quadrature import Rule
from dotphase.storage.results import Result

Channel = ScoreChannel | QuadraticChannel

#: Accuracy on the few points of the first stage, and on all points.
COARSE = Iteration(tolerance=1e-4, floor=1e-3, step=0.6, near=1.0, max_steps=300)
FINE = Iteration(tolerance=1e-9, floor=1e-7, step=1.0, max_steps=200)
#: Largest change of log q, log m, log V and u in one step.
MAX_CHANGE = 2.0
#: Newton steps to the best positional shift, and the largest weight of the positional part.
SHIFT_STEPS, MAX_OMEGA = 8, 0.999
#: Numbers of a solution, in the order of the description.
VALUES = ("q", "m", "V", "trace", "rank", "shift", "train_loss", "test_error")
LONG_NAMES = {
    "q": "tr S^2/d",
    "m": "tr S S*/d",
    "trace": "tr S/d",
    "rank": "fraction of positive eigenvalues of S",
    "shift": "positional shift u of the scores",
    "rho": "width of the teacher over d",
}


@dataclass(frozen=True, eq=False, repr=False)
class WideSolution(Result):
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
    stderr : half the spread over point sets for two tokens, standard error for more
    force : ``vhat, mhat, chihat``; S has the spectrum ``(mhat S* + sqrt(chihat) Z - ridge)_+/vhat``
    seconds : wall time

    Examples
    --------
    >>> solution = dp.wide.solve(alpha=0.7, rho=0.5, ridge=0.1)
    >>> round(solution.test_error, 5)
    0.02595
    """

    long_names: ClassVar = {name: LONG_NAMES[name] for name in ("q", "m", "trace", "rank", "shift")}

    alpha: float
    rho: float
    ridge: float
    length: int
    omega: float
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

    def to_dict(self) -> dict[str, Any]:
        """The solution as plain numbers, ready for JSON."""
        return fields_except(self, "force")

    def spectrum(
        self, points: int = 400
    ) -> tuple[Float[np.ndarray, " x"], Float[np.ndarray, " x"]]:
        """Positive eigenvalues of S on a grid, and their density, which integrates to `rank`.

        Examples
        --------
        >>> eigenvalues, density = dp.wide.solve(alpha=0.7, rho=0.5, ridge=0.1).spectrum()
        >>> bool((density >= 0).all())
        True
        """
        vhat, mhat, chihat = self.force
        if self.rank == 0:
            return np.zeros(0), np.zeros(0)
        noise = float(np.sqrt(chihat))
        edges = bands(mhat, noise, self.rho)
        x = np.linspace(max(edges[0][0], self.ridge), edges[-1][1], points + 2)[1:-1]
        density = np.maximum(-resolvent(x, mhat, noise, self.rho).imag, 0) / np.pi
        return (x - self.ridge) / vhat, density * vhat

    @property
    def description(self) -> Description:
        """Overlaps and losses with their errors."""
        state = "" if self.converged else "NOT CONVERGED: "
        title = (
            f"{state}wide attention at alpha = {self.alpha:g}, rho = {self.rho:g}, "
            f"ridge = {self.ridge:g}: test_error = {self.test_error:.6g}"
        )
        rows = ((LABELS.get(name, name), format_value(getattr(self, name), self.stderr[name]))
                for name in VALUES)  # fmt: skip
        return Description(title, tuple(rows))


@dataclass(frozen=True)
class WidePoint:
    """Parameters of a solve: data, teacher and penalty."""

    alpha: float
    rho: float
    ridge: float
    length: int
    omega: float

    def channel(self, rule: Rule) -> ScoreChannel:
        """The output side on a point set."""
        return ScoreChannel(self.length, self.omega, 1 + self.rho, rule)

    def channels(self) -> Iterator[Channel]:
        """The output side on all point sets."""
        if self.length == 1:
            yield QuadraticChannel(1 + self.rho)
        else:
            yield from map(self.channel, rules(self.length, mirrored=self.omega == 0))

    def initial(self) -> Float[np.ndarray, "4"]:
        """Initial (log q, log m, log V, u), from few points where there are several tokens."""
        Q = 1 + self.rho
        y = np.append(np.log([0.05 * Q, 0.1 * Q, 0.1 / self.ridge]), 0.0)
        if self.length == 1:
            return y
        channel = self.channel(coarse_rule(self.length, self.omega == 0))
        return _iterate(self, channel, y, COARSE).x


def check_arguments(
    rho: float, ridge: float, length: int, omega: float
) -> tuple[float, float, int, float]:
    """Check the arguments that all functions of this package share."""
    length = validation.integer("length", length, at_least=1, at_most=3)
    omega = validation.number("omega", omega, at_least=0, at_most=MAX_OMEGA if length > 1 else 0)
    return (
        validation.number("rho", rho, at_least=1e-3, at_most=1e3),
        validation.number("ridge", ridge, at_least=1e-6, at_most=1e3),
        length,
        omega,
    )


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
    alpha = validation.number("alpha", alpha, at_least=1e-9)
    rho, ridge, length, omega = check_arguments(rho, ridge, length, omega)
    point = WidePoint(alpha, rho, ridge, length, omega)
    rows, ends = [], []
    y: Float[np.ndarray, "4"] | None = None
    for channel in point.channels():
        overlaps = empty_overlaps(channel, omega)
        if upper_edge(alpha, channel.averages(overlaps), rho) > ridge:
            channel.reset()
            ends.append(_iterate(point, channel, point.initial() if y is None else y, FINE))
            y = ends[-1].x
            overlaps = _overlaps(y)
        rows.append(_measure(point, channel, overlaps))
    return WideSolution(
        **asdict(point),
        **_average(rows, length),
        converged=all(end.outcome.success for end in ends),
        residual=max((end.residual for end in ends), default=0.0),
        iterations=sum(end.iterations for end in ends),
        seconds=time.perf_counter() - start,
    )


def _average(rows: list[dict[str, float]], length: int) -> dict[str, Any]:
    """Means over point sets, and their errors."""
    table = {name: np.asarray([row[name] for row in rows]) for name in rows[0]}
    mean: dict[str, Any] = {name: float(np.mean(values)) for name, values in table.items()}
    # The two halves of a lattice err in opposite directions.
    shrink = 1 / np.sqrt(len(rows)) if length > 2 else 0.5
    spread = {name: float(shrink * np.std(table[name], ddof=len(rows) > 1)) for name in VALUES}
    force = tuple(mean.pop(name) for name in ("vhat", "mhat", "chihat"))
    return {**mean, "stderr": spread, "force": force}


def empty_overlaps(channel: Channel, omega: float) -> Overlaps:
    """The student without semantic part, ``S = 0``, at its best positional shift."""
    empty = Overlaps(0.0, 0.0, 0.0, 0.0)
    for _ in range(SHIFT_STEPS if omega else 0):
        mean = channel.averages(empty)
        empty = empty._replace(shift=empty.shift - mean.force / mean.stiffness)
    return empty


def upper_edge(alpha: float, mean: ScoreAverages, rho: float) -> float:
    """Largest eigenvalue of ``alpha mhat S* + sqrt(alpha chihat) Z``."""
    return bands(alpha * mean.mhat, float(np.sqrt(alpha * mean.chihat)), rho)[-1][1]


def _overlaps(y: Float[np.ndarray, "4"]) -> Overlaps:
    q, m, V = np.exp(y[:3]).tolist()
    return Overlaps(q, m, V, float(y[3]))


def _matrix(point: WidePoint, mean: ScoreAverages) -> MatrixOverlaps:
    """Overlaps of the matrix S that averages over sentences lead to."""
    vhat, mhat, chihat = (point.alpha * each for each in (mean.vhat, mean.mhat, mean.chihat))
    return thresholded(vhat, mhat, chihat, point.ridge, point.rho)


def _iterate(
    point: WidePoint, channel: Channel, y: Float[np.ndarray, "4"], settings: Iteration
) -> FixedPoint:
    """Iterate the equations for (log q, log m, log V, u) on one point set."""

    def image(y: Float[np.ndarray, "4"]) -> Float[np.ndarray, "4"]:
        overlaps = _overlaps(y)
        mean = channel.averages(overlaps)
        matrix = _matrix(point, mean)
        sizes = np.log(np.maximum([matrix.q, matrix.m, matrix.V], 1e-300))
        shift = overlaps.shift - mean.force / mean.stiffness if point.omega else 0.0
        return y + np.clip(np.append(sizes, shift) - y, -MAX_CHANGE, MAX_CHANGE)

    return fixed_point(image, y, lambda y: np.ones(4), lambda y: True, settings)


def _measure(point: WidePoint, channel: Channel, overlaps: Overlaps) -> dict[str, float]:
    """All numbers of a solution on one point set."""
    mean = channel.averages(overlaps)
    matrix = _matrix(point, mean)
    return {
        **overlaps._asdict(),
        "trace": matrix.trace,
        "rank": matrix.rank,
        "train_loss": point.alpha * mean.loss + point.ridge * matrix.trace,
        "test_error": 2 / point.length * channel.test_loss(overlaps),
        "vhat": point.alpha * mean.vhat,
        "mhat": point.alpha * mean.mhat,
        "chihat": point.alpha * mean.chihat,
    }
