r"""Averages over the scores of one sentence: the output side of the state evolution.

The scores ``h_ab = (x_a^T S x_b - delta_ab Tr S)/sqrt d`` are Gaussian, with variances
proportional to 2 (a = b) and 1. The softmax of a row does not change with a constant, so that
``k = L (L + 1)/2 - 1`` combinations of the scores matter. They are chosen to be independent and
equally likely: logits are ``E s`` with ``s ~ N(0, Q* I_k)`` for the teacher. Given the teacher's s,

    w = u e + (m/Q*) s + sqrt(q - m^2/Q*) xi,       X = argmin |X - w|^2/(2 V) + l(X; s),
    l = |T - softmax(E X)|^2/2,   T = (1 - omega) softmax(E s) + omega A,

where ``E e`` is the identity with centered rows: positional weights shift the scores by ``u e``.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from dotphase.extensive.spectral_density import Overlaps
from dotphase.model.paper import kind_mixing
from dotphase.numerics.quadrature import Rule, sobol_rule

#: Spacing and radius of the lattice for two tokens.
SPACING, RADIUS = 0.5, 6.5
#: log2 of the Sobol points of one scramble for longer sentences, and number of scrambles.
LOG2_POINTS, SCRAMBLES = 13, 4
#: Longest Newton step, largest number of them, and largest number of halvings.
MAX_STEP, MAX_NEWTON, MAX_HALVINGS = 2.0, 60, 12
#: Response up to which the proximal energy is convex.
CONVEX = 1.0
#: Curvature of the loss of a quadratic network, ``(h - h*)^2/2``: the variance of h is 2 Q*.
CURVATURE = 2.0
#: Gradient, relative to 1, at which a proximal point has converged.
PROX_TOLERANCE = 1e-11
#: The same beyond which a point counts as unsettled: rounding stops some before the tolerance.
SETTLED = 1e-6

Scores = Float[np.ndarray, "k points"]
Points = slice | np.ndarray
ALL = slice(None)


def count_scores(length: int) -> int:
    """Number k of independent scores that the labels of a sentence determine."""
    return 1 if length == 1 else length * (length + 1) // 2 - 1


@cache
def score_map(length: int) -> tuple[Float[np.ndarray, "L L k"], Float[np.ndarray, " k"]]:
    """The logits E of independent scores, and the direction e of positional weights."""
    pairs = [(a, b) for a in range(length) for b in range(a, length)]
    fields = np.zeros((length, length, len(pairs)))
    for index, (a, b) in enumerate(pairs):
        fields[a, b, index] = fields[b, a, index] = np.sqrt(1.0 + (a == b))
    fields -= fields.mean(axis=1, keepdims=True)
    left, values, _ = np.linalg.svd(fields.reshape(length**2, -1), full_matrices=False)
    k = count_scores(length)
    logits = left[:, :k] * values[:k]
    identity = (np.eye(length) - 1 / length).ravel()
    return logits.reshape(length, length, k), np.linalg.pinv(logits) @ identity


class ScoreAverages(NamedTuple):
    """Averages over sentences, all per sentence."""

    #: Curvature, signal and noise of the force on the matrix S.
    vhat: float
    mhat: float
    chihat: float
    #: Mean l at the proximal points.
    loss: float
    #: Mean slope of l along e, and its derivative in the shift.
    force: float
    stiffness: float
    #: Share of the points whose proximal point has not converged.
    unsettled: float = 0.0


@lru_cache(maxsize=8)
def rules(length: int, mirrored: bool) -> tuple[Rule, ...]:
    """Point sets for ``(s, xi)/sqrt(variance)``; the spread of their averages is the error.

    Two tokens have the two interleaved halves of a lattice, each with the points of even or odd
    index sum. Its averages converge exponentially in the spacing. If ``(s, xi) -> -(s, xi)`` is a
    symmetry, the lattice is `mirrored`.
    """
    if length > 2:
        rngs = np.random.default_rng(length).spawn(SCRAMBLES)
        return tuple(sobol_rule(LOG2_POINTS, 2 * count_scores(length), rng) for rng in rngs)
    size = int(RADIUS / SPACING)
    index = np.indices([2 * size + 1] * 4).reshape(4, -1) - size
    squared = SPACING**2 * np.sum(index**2, axis=0)
    inside, weights = squared <= RADIUS**2, np.exp(-squared / 2)
    # One representative of each orbit: exchange of the tokens changes the signs of s_2 and xi_2.
    for first, second in ((1, 3), (0, 2)) if mirrored else ((1, 3),):
        sign = np.sign((size + 1) * index[first] + index[second])
        inside &= sign >= 0
        weights = weights * (1 + sign)
    halves = [inside & (index.sum(axis=0) % 2 == parity) for parity in (0, 1)]
    return tuple(
        Rule(SPACING * index[:, half], weights[half] / weights[half].sum()) for half in halves
    )


class QuadraticChannel:
    """Closed forms of the averages of `ScoreChannel` for one token with squared loss."""

    def __init__(self, Q: float) -> None:
        self.Q = Q

    def averages(self, overlaps: Overlaps) -> ScoreAverages:
        """Averages at the proximal points."""
        slope = CURVATURE / (1 + CURVATURE * overlaps.V)
        chihat = slope**2 * max(self.Q - 2 * overlaps.m + overlaps.q, 1e-30)
        return ScoreAverages(slope, slope, chihat, chihat / (2 * CURVATURE), 0.0, 1.0)

    def test_loss(self, overlaps: Overlaps) -> float:
        """Mean loss of a fresh sentence."""
        return CURVATURE / 2 * (self.Q - 2 * overlaps.m + overlaps.q)


class ScoreChannel:
    """The loss of one sentence as a function of the student's scores, at points of a rule."""

    def __init__(self, length: int, omega: float, Q: float, rule: Rule) -> None:
        self.logits, self.direction = score_map(length)
        self.k, self.Q, self.weights = self.direction.size, Q, rule.weights
        self.teacher, self.noise = np.sqrt(Q) * rule.points[: self.k], rule.points[self.k :]
        mixing = kind_mixing(length, length)[..., None]
        self.target = (1 - omega) * self.attention(self.teacher) + omega * mixing
        logits, target = (x.reshape(length**2, -1) for x in (self.logits, self.target))
        #: Scores at which the loss vanishes, up to what a symmetric S cannot represent.
        self.exact = np.linalg.pinv(logits) @ np.log(target)
        self.last: Scores | None = None

    def attention(self, X: Scores) -> Float[np.ndarray, "L L points"]:
        """Attention matrices of scores."""
        e = np.einsum("abk,kn->abn", self.logits, X)
        e = np.exp(e - e.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    def loss(self, X: Scores, at: Points = ALL) -> Float[np.ndarray, " points"]:
        """``|T - softmax(E X)|^2/2`` at the points `at`."""
        return 0.5 * np.sum((self.attention(X) - self.target[..., at]) ** 2, axis=(0, 1))

    def energy(self, X: Scores, w: Scores, V: float, at: Points = ALL) -> np.ndarray:
        """``|X - w|^2/2 + V l(X)``, which the proximal points minimize."""
        return np.sum((X - w[:, at]) ** 2, axis=0) / 2 + V * self.loss(X, at)

    def slopes(self, X: Scores, at: Points = ALL) -> tuple[Scores, Float[np.ndarray, "k k points"]]:
        """Gradient and Hessian of the loss in the scores.

        With the residual ``r = p - T``, its mean ``c = p.r`` in each row, and centered logits C:

            gradient = sum p (r - c) C,      Hessian = sum p (r - c + p) C C^T.
        """
        p = self.attention(X)
        r = p - self.target[..., at]
        r -= np.sum(p * r, axis=1, keepdims=True)
        mean = np.einsum("abk,abn->akn", self.logits, p)
        C = self.logits[..., None] - mean[:, None]
        gradient = np.einsum("abn,abkn->kn", p * r, C)
        weighted = (p * (r + p))[:, :, None] * C
        return gradient, np.einsum("abkn,abln->kln", weighted, C)

    def sources(self, overlaps: Overlaps) -> Scores:
        """The student's scores w for a fresh sentence."""
        q, m = overlaps.q, overlaps.m
        shift = overlaps.shift * self.direction[:, None]
        rest = np.sqrt(max(q - m**2 / self.Q, 0.0))
        return shift + m / self.Q * self.teacher + rest * self.noise

    def averages(self, overlaps: Overlaps) -> ScoreAverages:
        """Averages at the proximal points."""
        w, V = self.sources(overlaps), overlaps.V
        starts = [w, self.exact] if V > CONVEX else [w]
        if self.last is not None:
            starts = [self.last]
        minima = np.stack([proximal_points(self, w, V, start) for start in starts])
        energies = np.stack([self.energy(X, w, V) for X in minima])
        X = np.take_along_axis(minima, energies.argmin(axis=0)[None, None], axis=0)[0]
        if V > 0:
            self.last = X
        gradient, hessian = self.slopes(X)
        slope = np.abs(X - w + V * gradient).max(axis=0)
        identity = np.eye(self.k)[:, :, None]
        response = self.mean(solve_definite(identity + V * hessian, hessian))
        vhat = float(np.trace(response))
        projected = -float(self.mean(np.sum(gradient * self.teacher, axis=0)))
        return ScoreAverages(
            vhat=vhat,
            mhat=(projected + overlaps.m * vhat) / self.Q,  # Stein's identity
            chihat=float(self.mean(np.sum(gradient**2, axis=0))),
            loss=float(self.mean(self.loss(X))),
            force=float(self.direction @ self.mean(gradient)),
            stiffness=float(self.direction @ response @ self.direction),
            unsettled=float(self.mean(1.0 - (slope <= SETTLED * (1 + V)))),
        )

    def mean(self, values: Float[np.ndarray, "*any points"]) -> Float[np.ndarray, "*any"]:
        """Average over the points; products of long vectors by BLAS would start threads."""
        return np.einsum("...n,n->...", values, self.weights)

    def test_loss(self, overlaps: Overlaps) -> float:
        """Mean loss of a fresh sentence."""
        return float(self.mean(self.loss(self.sources(overlaps))))


def solve_definite(
    matrix: Float[np.ndarray, "k k points"], right: np.ndarray, floor: float = -np.inf
) -> np.ndarray:
    """Solve ``matrix x = right`` at all points by elimination; pivots are at least `floor`."""
    a, x = matrix.copy(), right.copy()
    k = len(a)
    for i in range(k):
        a[i, i] = np.maximum(a[i, i], floor)
        for j in range(i + 1, k):
            factor = a[j, i] / a[i, i]
            a[j, i + 1 :] -= factor * a[i, i + 1 :]
            x[j] -= factor * x[i]
    for i in reversed(range(k)):
        for j in range(i + 1, k):
            x[i] -= a[i, j] * x[j]
        x[i] /= a[i, i]
    return x


def proximal_points(channel: ScoreChannel, w: Scores, V: float, start: Scores) -> Scores:
    """Minimize ``|X - w|^2/2 + V l(X)`` at all points by guarded Newton steps."""
    X, active = start.copy(), np.arange(w.shape[1])
    identity = np.eye(len(w))[:, :, None]
    for _ in range(MAX_NEWTON):
        slope, hessian = channel.slopes(X[:, active], active)
        slope = X[:, active] - w[:, active] + V * slope
        moving = np.abs(slope).max(axis=0) > PROX_TOLERANCE * (1 + V)
        if not moving.any():
            break
        active, slope, hessian = active[moving], slope[:, moving], hessian[..., moving]
        step = -solve_definite(identity + V * hessian, slope, floor=0.2)
        step *= np.minimum(1, MAX_STEP / np.sqrt(np.sum(step**2, axis=0) + 1e-300))
        # Halve the steps that would raise the energy; cancel those that still do.
        limit = channel.energy(X[:, active], w, V, active) * (1 + 1e-13)
        raised = np.arange(active.size)
        for _ in range(MAX_HALVINGS):
            trial = X[:, active[raised]] + step[:, raised]
            raised = raised[channel.energy(trial, w, V, active[raised]) > limit[raised]]
            if not raised.size:
                break
            step[:, raised] /= 2
        step[:, raised] = 0
        X[:, active] += step
    return X
