"""The procedure behind the released solutions of the equations, as a method to compare with.

From its description (github.com/SPOC-group/positional-and-semantic-attention): averages over each
pair of fields by a planar rule, of degree 7 with 12 nodes for the fixed point and of degree 11 with
28 nodes for the training loss; the proximal point by a local minimization from X = 0; the overlaps
iterated with damping .8 from a fixed start until they change by less than 1e-4. It has no error
bar; the comparison shows its bias. Model of the paper, two tokens, rank one, where with
``u = X_1 - X_2`` row i of the attention is ``(s, 1 - s)``, ``s = 1/(1 + exp(-X_i u))``.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.special import expit

from dotphase import positional_semantic
from dotphase.analysis import Rule, first_rise, locate_fall

#: Damping, change of an overlap at convergence, and largest number of iterations.
DAMPING, TOLERANCE, MOST = 0.8, 1e-4, 300
#: Initial q, m, V and theta of the iteration.
STARTS = {
    "semantic": (0.906838, 0.0002, 14.575, 0.3472),
    "positional": (0.0206838, 0.2, 14.575, 0.0),
    "uninformed": (0.0206838, 0.0, 14.575, 0.0),
}
#: Longest step of the local minimization, largest number of steps, and step of convergence.
RADIUS, STEPS, SMALL = 0.2, 200, 1e-8

Values = Float[np.ndarray, " points"]


class State(NamedTuple):
    """Overlaps of many points at once."""

    q: Values
    m: Values
    V: Values
    theta: Values


class Conjugates(NamedTuple):
    """Their conjugates, and the mean of the Moreau envelope."""

    q: Values
    m: Values
    V: Values
    theta: Values
    energy: Values


class Problem(NamedTuple):
    """Points to solve together: alpha, omega, sigma^2, ridge, and the first column of A."""

    alpha: Values
    omega: Values
    rho: Values
    ridge: Values
    mixing: Float[np.ndarray, "2 points"]


class Solved(NamedTuple):
    """Results of the procedure: overlaps, losses, number of iterations."""

    overlaps: State
    train_loss: Values
    test_error: Values
    iterations: Float[np.ndarray, " points"]


def problem(
    alpha: Any, omega: Any, sigma: Any = 0.5, ridge: Any = 0.01, mixing: str = "standard"
) -> Problem:
    """Make points of the paper's model from numbers or arrays that broadcast."""
    broadcast = (np.atleast_1d(np.asarray(value, float)) for value in (alpha, omega, sigma, ridge))
    alpha, omega, sigma, ridge = np.broadcast_arrays(*broadcast)
    mixing_column = np.asarray(positional_semantic(mixing=mixing).teacher.mixing)[:, 0]
    columns = np.repeat(mixing_column[:, None], alpha.size, axis=1)
    return Problem(alpha, omega, sigma**2, ridge, columns)


def planar(*orbits: tuple[float, float, float]) -> Rule:
    """A symmetric rule in the plane from (u, v, weight): all ``(+-u, +-v)`` and ``(+-v, +-u)``."""
    nodes, weights = [], []
    for u, v, weight in orbits:
        orbit = {(s * a, t * b) for a, b in ((u, v), (v, u)) for s, t in product((1, -1), repeat=2)}
        nodes += sorted(orbit)
        weights += [weight] * len(orbit)
    return Rule(np.array(nodes).T, np.array(weights))


@lru_cache(maxsize=1)
def degree_seven() -> Rule:
    """12 nodes with the moments of a standard normal pair up to degree 7."""
    b, c = np.sqrt((9 - 3 * np.sqrt(5)) / 4), np.sqrt((9 + 3 * np.sqrt(5)) / 4)
    small, large = (5 + 2 * np.sqrt(5)) / 45, (5 - 2 * np.sqrt(5)) / 45
    return planar((np.sqrt(6), 0.0, 1 / 36), (b, b, small), (c, c, large))


@lru_cache(maxsize=1)
def degree_eleven() -> Rule:
    """28 nodes with the moments of a standard normal pair up to degree 11.

    One orbit is on the axes, two are on the diagonals and two elsewhere. Their 12 numbers solve the
    12 equations of the even moments.
    """
    return planar(
        (0.8905390917138978, 0.0, 0.1710593320902806),
        (1.341066378997229, 1.341066378997229, 0.03985112885790786),
        (2.41759404925021, 2.41759404925021, 0.0013561508822972194),
        (2.1986325229255828, 0.59090757505048, 0.018284546504326905),
        (3.5361364413160383, 0.9468028415081443, 0.0005821475804302488),
    )


def product_rule(first: Rule, second: Rule) -> Rule:
    """Product in four dimensions of a rule for the student's fields and one for the teacher's."""
    nodes = [
        np.repeat(first.points, second.weights.size, axis=1),
        np.tile(second.points, (1, first.weights.size)),
    ]
    return Rule(np.concatenate(nodes), np.outer(first.weights, second.weights).ravel())


def solve(
    points: Problem, branch: str, fixed: Rule | None = None, loss: Rule | None = None
) -> Solved:
    """Run the procedure at all points at once.

    Parameters
    ----------
    points : Problem
        Parameters of the points.
    branch : {"semantic", "positional", "uninformed"}
        Name of the fixed start.
    fixed, loss : Rule, optional
        Planar rules of the fixed point and of the losses; by default the released ones.
    """
    fixed, loss = fixed or degree_seven(), loss or degree_eleven()
    rule = product_rule(fixed, fixed)
    state = State(*(np.full(points.alpha.size, value) for value in STARTS[branch]))
    active, iterations = np.arange(points.alpha.size), np.full(points.alpha.size, float(MOST))
    averages = [np.empty(points.alpha.size) for _ in range(5)]
    for count in range(MOST):
        active_points, now = _at(points, active), State(*(values[active] for values in state))
        hats = _conjugates(active_points, now, rule)
        new = _overlaps(active_points, hats)
        change = np.max([np.abs(new[k] - now[k]) for k in (0, 1, 3)], axis=0)
        done = (change < TOLERANCE) | (count == MOST - 1)
        for store, values in zip(averages, hats, strict=True):
            store[active] = values
        iterations[active[done]] = np.where(change[done] < TOLERANCE, count, MOST)
        for k, (old, values) in enumerate(zip(now, new, strict=True)):
            state[k][active] = np.where(done, old, DAMPING * old + (1 - DAMPING) * values)
        active = active[~done]
        if not active.size:
            break
    return Solved(
        state,
        _train_loss(points, state, Conjugates(*averages), loss),
        _test_error(points, state, fixed, loss) / 2,
        iterations,
    )


def linear_error(points: Problem) -> Values:
    """Test error of the linear layer by the same rules: its weights with the coarser one."""

    def target(rule: Rule) -> Any:
        attention = _attention(np.sqrt(points.rho)[:, None] * rule.points[:, None])
        omega = points.omega[:, None]
        return [(1 - omega) * attention[k] + omega * points.mixing[k][:, None] for k in (0, 1)]

    fine = degree_eleven()
    layer = [column @ degree_seven().weights for column in target(degree_seven())]
    miss = [column - mean[:, None] for column, mean in zip(target(fine), layer, strict=True)]
    return np.asarray(points.rho * (sum(column**2 for column in miss) @ fine.weights))


def critical(omega: float, near: float, width: float = 0.3, count: int = 17) -> tuple[float, float]:
    """alpha_c and alpha_l of the procedure at one omega.

    The search runs from ``(1 - width) near`` to ``(1 + width) near``, with `near` close to alpha_c.
    """
    alphas = near * np.linspace(1 - width, 1 + width, count)
    solutions = {name: solve(problem(alphas, omega), name) for name in ("semantic", "positional")}
    gap = solutions["semantic"].train_loss - solutions["positional"].train_loss
    gain = linear_error(problem(alphas, omega)) - solutions["semantic"].test_error
    alpha_c, _ = locate_fall(alphas, gap, np.zeros(len(alphas)))
    return alpha_c, first_rise(alphas, gain, alpha_c if np.isfinite(alpha_c) else None)


def _at(points: Problem, indices: Any) -> Problem:
    return Problem(*(values[..., indices] for values in points))


def _attention(x: Any) -> tuple[Any, Any]:
    """First column of the attention matrix."""
    u = x[0] - x[1]
    return expit(x[0] * u), expit(x[1] * u)


def _fields(points: Problem, now: State, rule: Rule) -> tuple[Any, Any, Any]:
    """Centers of the proximal problem, the teacher's first column, and the remainder of h*."""
    xi, y = rule.points[:2], rule.points[2:]
    q, m, theta = (np.sqrt(now.q)[:, None], now.m[:, None], now.theta[:, None])
    remainder = np.sqrt(points.rho[:, None] - theta**2 / q**2)
    center = q * xi[0] + m, q * xi[1] - m
    attention = _attention([theta / q * xi[k] + remainder * y[k] for k in (0, 1)])
    omega = points.omega[:, None]
    target = [(1 - omega) * attention[k] + omega * points.mixing[k][:, None] for k in (0, 1)]
    return center, target, remainder


def _conjugates(points: Problem, now: State, rule: Rule) -> Conjugates:
    center, target, remainder = _fields(points, now, rule)
    rho, V = points.rho[:, None], now.V[:, None]
    x, energy = local_minimum(center, target, V, rho)
    force = [(x[k] - center[k]) / V for k in (0, 1)]
    xi, y, weights, alpha = rule.points[:2], rule.points[2:], rule.weights, points.alpha
    theta = alpha * (((force[0] * y[0] + force[1] * y[1]) / remainder) @ weights)
    response = ((force[0] * xi[0] + force[1] * xi[1]) @ weights) / np.sqrt(now.q)
    return Conjugates(
        q=alpha * ((force[0] ** 2 + force[1] ** 2) @ weights),
        m=alpha * ((force[0] - force[1]) @ weights),
        V=-alpha * response + now.theta * theta / now.q,
        theta=theta,
        energy=energy @ weights,
    )


def _overlaps(points: Problem, hats: Conjugates) -> State:
    rho = points.rho
    R = 1 / (points.ridge + rho * hats.V)
    total = R**2 * (rho * hats.q + hats.m**2 + (rho * hats.theta) ** 2)
    return State(rho * total, R * hats.m, rho * R, rho**2 * R * hats.theta)


def _train_loss(points: Problem, now: State, hats: Conjugates, loss: Rule) -> Values:
    """Minus the free energy: alpha times the mean envelope, less the terms of the conjugates."""
    rho = points.rho
    energy = _conjugates(points, now, product_rule(loss, loss)).energy
    traces = 0.5 * (hats.V * now.q - hats.q * now.V) - now.m * hats.m - now.theta * hats.theta
    entropy = (
        0.5 * (hats.q * rho + hats.m**2 + (hats.theta * rho) ** 2) / (points.ridge + hats.V * rho)
    )
    return np.asarray(points.alpha * energy - traces - entropy)


def _test_error(points: Problem, now: State, fixed: Rule, loss: Rule) -> Values:
    """``E tr[(T-S) rho (T-S)^T]``; squares with the finer rule, the product with both."""

    def square(first: Any) -> Any:
        return sum(column**2 + (1 - column) ** 2 for column in first)

    lone = Rule(np.concatenate([loss.points, loss.points]), loss.weights)
    no_alignment = now._replace(theta=np.zeros_like(now.theta))
    center, target, _ = _fields(points, no_alignment, lone)
    squares = (square(target) + square(_attention(center))) @ lone.weights
    mixed = product_rule(loss, fixed)
    center, target, _ = _fields(points, now, mixed)
    answer = _attention(center)
    cross = sum(s * t + (1 - s) * (1 - t) for s, t in zip(answer, target, strict=True))
    return np.asarray(points.rho * (squares - 2 * cross @ mixed.weights))


def local_minimum(center: Any, target: Any, V: Any, rho: Any) -> tuple[Any, Any]:
    """Descend from X = 0 by damped Newton steps of bounded length.

    The result is a local, not the global, minimum of
    ``|X - center|^2/(2V) + rho [(s_1 - t_1)^2 + (s_2 - t_2)^2]``.
    """
    x = [np.zeros(np.broadcast_shapes(values.shape, V.shape)) for values in center]

    def value(x: Any) -> Any:
        s = _attention(x)
        return sum(
            (x[k] - center[k]) ** 2 / (2 * V) + rho * (s[k] - target[k]) ** 2 for k in (0, 1)
        )

    lowest, radius = value(x), np.full_like(x[0], RADIUS)
    for _ in range(STEPS):
        step = _newton(x, center, target, V, rho)
        length = np.hypot(*step)
        short = np.minimum(1.0, radius / np.maximum(length, 1e-300))
        trial = [x[k] + short * step[k] for k in (0, 1)]
        trial_value = value(trial)
        better = trial_value <= lowest + 1e-16
        x = [np.where(better, trial[k], x[k]) for k in (0, 1)]
        lowest = np.where(better, trial_value, lowest)
        radius = np.where(
            better, np.minimum(1.5 * radius, RADIUS), 0.25 * np.minimum(radius, length)
        )
        if np.all((length < SMALL) | (radius < SMALL)):
            break
    return x, lowest


def _newton(x: Any, center: Any, target: Any, V: Any, rho: Any) -> tuple[Any, Any]:
    """Newton's step with the Hessian shifted to be positive."""
    s = _attention(x)
    slope = [column * (1 - column) for column in s]
    miss = [2 * rho * (s[k] - target[k]) * slope[k] for k in (0, 1)]
    curve = [2 * rho * slope[k] ** 2 + miss[k] * (1 - 2 * s[k]) for k in (0, 1)]
    # Derivatives of the scores X_1 u and X_2 u in X_1 and X_2.
    along = (2 * x[0] - x[1], x[1]), (-x[0], x[0] - 2 * x[1])
    g = [(x[k] - center[k]) / V + miss[0] * along[k][0] + miss[1] * along[k][1] for k in (0, 1)]
    a = 1 / V + curve[0] * along[0][0] ** 2 + curve[1] * along[0][1] ** 2 + 2 * miss[0]
    b = (
        curve[0] * along[0][0] * along[1][0]
        + curve[1] * along[0][1] * along[1][1]
        - miss[0]
        + miss[1]
    )
    c = 1 / V + curve[0] * along[1][0] ** 2 + curve[1] * along[1][1] ** 2 - 2 * miss[1]
    low = (a + c) / 2 - np.hypot((a - c) / 2, b)
    shift = np.maximum(0.0, 1e-3 / V - low) + np.where(low < 0, -low, 0.0)
    a, c = a + shift, c + shift
    determinant = a * c - b**2
    return -(c * g[0] - b * g[1]) / determinant, -(a * g[1] - b * g[0]) / determinant
