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

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from dotphase.model.paper import kind_mixing
from dotphase.numerics.quadrature import Rule, normal_points

#: Spacing and radius of the lattice for two tokens.
SPACING, RADIUS = 0.5, 6.5
#: The same for the first stage of a solve.
COARSE_SPACING, COARSE_RADIUS = 0.75, 4.5
#: log2 of the Sobol points of one scramble for longer sentences, and number of scrambles.
LOG2_POINTS, SCRAMBLES = 13, 4
#: Longest Newton step, largest number of them, and largest number of halvings.
MAX_STEP, MAX_NEWTON, MAX_HALVINGS = 2.0, 60, 12
#: Response up to which the proximal energy is convex.
CONVEX = 1.0
#: Gradient, relative to 1, at which a proximal point has converged.
PROX_TOLERANCE = 1e-11

Scores = Float[np.ndarray, "k points"]


@cache
def score_map(length: int) -> tuple[Float[np.ndarray, "L L k"], Float[np.ndarray, " k"]]:
    """The logits E of independent scores, and the direction e of positional weights."""
    pairs = [(a, b) for a in range(length) for b in range(a, length)]
    fields = np.zeros((length, length, len(pairs)))
    for index, (a, b) in enumerate(pairs):
        fields[a, b, index] = fields[b, a, index] = np.sqrt(1.0 + (a == b))
    fields -= fields.mean(axis=1, keepdims=True)
    left, values, _ = np.linalg.svd(fields.reshape(length**2, -1), full_matrices=False)
    k = len(pairs) - 1
    logits = left[:, :k] * values[:k]
    identity = (np.eye(length) - 1 / length).ravel()
    return logits.reshape(length, length, k), np.linalg.pinv(logits) @ identity


class Overlaps(NamedTuple):
    """The unknowns: overlaps, response and the shift u by positions."""

    q: float
    m: float
    V: float
    shift: float


@dataclass(frozen=True)
class ScoreAverages:
    """Averages over sentences, all per sentence.

    Attributes
    ----------
    vhat, mhat, chihat : curvature, signal and noise of the force on the matrix S
    loss : mean l at the proximal points
    force, stiffness : mean slope of l along e, and its derivative in the shift
    """

    vhat: float
    mhat: float
    chihat: float
    loss: float
    force: float
    stiffness: float


def rules(length: int, mirrored: bool) -> tuple[Rule, ...]:
    """Point sets for ``(s, xi)/sqrt(variance)``; the spread of their averages is the error.

    Two tokens have the two interleaved halves of a lattice, each with the points of even or odd
    index sum. Its averages converge exponentially in the spacing.

    Parameters
    ----------
    length : tokens
    mirrored : True if ``(s, xi) -> -(s, xi)`` is a symmetry
    """
    if length == 2:
        return _lattices(mirrored, SPACING, RADIUS)
    return _scrambles(length, LOG2_POINTS)


def coarse_rule(length: int, mirrored: bool) -> Rule:
    """A small point set for the first stage of a solve."""
    if length == 2:
        return _lattices(mirrored, COARSE_SPACING, COARSE_RADIUS)[0]
    return _scrambles(length, LOG2_POINTS - 4)[0]


@lru_cache(maxsize=4)
def _lattices(mirrored: bool, spacing: float, radius: float) -> tuple[Rule, ...]:
    size = int(radius / spacing)
    axis = np.arange(-size, size + 1)
    index = np.stack(np.meshgrid(*[axis] * 4, indexing="ij")).reshape(4, -1)
    points = spacing * index
    # One representative of each orbit: exchange of the tokens changes the signs of s_2 and xi_2.
    squared = np.sum(points**2, axis=0)
    keep, weights = squared <= radius**2, np.exp(-squared / 2)
    for first, second in ((1, 3), (0, 2)) if mirrored else ((1, 3),):
        negative = (index[first] < 0) | ((index[first] == 0) & (index[second] < 0))
        zero = (index[first] == 0) & (index[second] == 0)
        keep &= ~negative
        weights = np.where(zero, weights, 2 * weights)
    halves = []
    for parity in (0, 1):
        chosen = keep & (index.sum(axis=0) % 2 == parity)
        halves.append(Rule(points[:, chosen], weights[chosen] / weights[chosen].sum()))
    return tuple(halves)


@lru_cache(maxsize=4)
def _scrambles(length: int, log2_points: int) -> tuple[Rule, ...]:
    k = length * (length + 1) // 2 - 1
    count = 2**log2_points
    children = np.random.SeedSequence(length).spawn(SCRAMBLES)
    points = [normal_points(2 * k, count, np.random.default_rng(child)).T for child in children]
    return tuple(Rule(each, np.full(count, 1 / count)) for each in points)


class ScoreChannel:
    """The loss of one sentence as a function of the student's scores, at points of a rule."""

    def __init__(self, length: int, omega: float, Q: float, rule: Rule) -> None:
        self.length = length
        self.logits, self.direction = score_map(length)
        self.k, self.Q, self.rule = self.direction.size, Q, rule
        self.teacher, self.noise = np.sqrt(Q) * rule.points[: self.k], rule.points[self.k :]
        target = (1 - omega) * self.attention(self.teacher) + omega * kind_mixing(length, length)[
            ..., None
        ]
        self.target = target
        scores = np.log(target) - np.log(target).mean(axis=1, keepdims=True)
        flat = self.logits.reshape(-1, self.k)
        #: Scores at which the loss vanishes, up to what a symmetric S cannot represent.
        self.exact = np.linalg.pinv(flat) @ scores.reshape(len(flat), -1)
        self.last: Scores | None = None

    def reset(self) -> None:
        """Forget the last proximal points."""
        self.last = None

    def attention(self, X: Scores) -> Float[np.ndarray, "L L points"]:
        """Attention matrices of scores."""
        e = np.einsum("abk,kn->abn", self.logits, X)
        e = np.exp(e - e.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    def loss(self, X: Scores, at: slice | np.ndarray = slice(None)) -> Float[np.ndarray, " points"]:
        """``|T - softmax(E X)|^2/2`` at some of the points."""
        return 0.5 * np.sum((self.attention(X) - self.target[..., at]) ** 2, axis=(0, 1))

    def slopes(
        self, X: Scores, at: slice | np.ndarray = slice(None)
    ) -> tuple[Scores, Float[np.ndarray, "k k points"]]:
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
        q, m, _, shift = overlaps
        rest = np.sqrt(max(q - m**2 / self.Q, 0.0))
        return shift * self.direction[:, None] + m / self.Q * self.teacher + rest * self.noise

    def averages(self, overlaps: Overlaps) -> ScoreAverages:
        """Averages at the proximal points."""
        w, V = self.sources(overlaps), overlaps.V
        starts = [w] if self.last is None else [self.last]
        if self.last is None and V > CONVEX:
            starts.append(self.exact)
        ends = [proximal_points(self, w, V, start) for start in starts]
        energies = np.stack([np.sum((X - w) ** 2, axis=0) / 2 + V * self.loss(X) for X in ends])
        X = np.stack(ends)[energies.argmin(axis=0), :, np.arange(w.shape[1])].T
        self.last = X
        gradient, hessian = self.slopes(X)
        identity = np.eye(self.k)[:, :, None]
        response = self.mean(solve_definite(identity + V * hessian, hessian, 0.0))
        vhat = float(np.trace(response))
        projected = -float(self.mean(np.sum(gradient * self.teacher, axis=0)))
        return ScoreAverages(
            vhat=vhat,
            mhat=(projected + overlaps.m * vhat) / self.Q,  # Stein's identity
            chihat=float(self.mean(np.sum(gradient**2, axis=0))),
            loss=float(self.mean(self.loss(X))),
            force=float(self.direction @ self.mean(gradient)),
            stiffness=float(self.direction @ response @ self.direction),
        )

    def mean(self, values: Float[np.ndarray, "*any points"]) -> Float[np.ndarray, "*any"]:
        """Average over the points; products of long vectors by BLAS would start threads."""
        return np.einsum("...n,n->...", values, self.rule.weights)

    def test_loss(self, overlaps: Overlaps) -> float:
        """Mean loss of a fresh sentence."""
        return float(self.mean(self.loss(self.sources(overlaps))))


def solve_definite(
    matrix: Float[np.ndarray, "k k points"], right: np.ndarray, floor: float
) -> np.ndarray:
    """Solve ``matrix x = right`` at all points by elimination; pivots are at least `floor`."""
    a, x = matrix.copy(), right.copy()
    k = len(a)
    for i in range(k):
        if floor:
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
    X = start.copy()
    active = np.arange(w.shape[1])
    identity = np.eye(len(w))[:, :, None]
    for _ in range(MAX_NEWTON):
        here, source = X[:, active], w[:, active]
        slope, hessian = channel.slopes(here, active)
        slope = here - source + V * slope
        going = np.abs(slope).max(axis=0) > PROX_TOLERANCE * (1 + V)
        if not going.any():
            break
        active, here, source, slope = (each[..., going] for each in (active, here, source, slope))
        step = -solve_definite(identity + V * hessian[..., going], slope, 0.2)
        step *= np.minimum(1, MAX_STEP / np.sqrt(np.sum(step**2, axis=0) + 1e-300))
        X[:, active] = _line_search(channel, active, here, source, V, step)
    return X


def _line_search(
    channel: ScoreChannel, active: np.ndarray, X: Scores, w: Scores, V: float, step: Scores
) -> Scores:
    """Halve the steps of points at which they would raise the energy."""

    def energy(Y: Scores, which: np.ndarray | slice) -> np.ndarray:
        distance = np.sum((Y - w[:, which]) ** 2, axis=0) / 2
        return distance + V * channel.loss(Y, active[which])

    best = X + step
    before = energy(X, slice(None))
    bad = np.flatnonzero(energy(best, slice(None)) > before * (1 + 1e-13))
    for halving in range(1, MAX_HALVINGS):
        if not bad.size:
            break
        best[:, bad] = X[:, bad] + step[:, bad] / 2**halving
        bad = bad[energy(best[:, bad], bad) > before[bad] * (1 + 1e-13)]
    best[:, bad] = X[:, bad]
    return best
