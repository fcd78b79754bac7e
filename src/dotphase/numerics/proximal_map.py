"""The proximal map of many points at once, at its global minimum.

For each point the map solves

    X = argmin_X  sum_l 1/2 (X_l - omega_l)^T V_l^{-1} (X_l - omega_l) + ell(X; T),

a problem of dimension D = L r that is not convex when V is large: a few per cent of the
points have several minima, and the lowest one changes as omega moves. Each call has four parts:

1. All points take safeguarded Newton steps from their last minimizers, as long as many of them have
   not settled.
2. The points that have not settled are gathered and iterated until they have.
3. One probe per call tests convexity. A lower minimum of a point with objective E can only lie in
   the ball ``(X - omega)^T V^{-1} (X - omega) <= 2 E``, because ell is not negative. The probe is
   another point of this ball at every call. A point whose Hessian is not positive definite at the
   probe stays marked as nonconvex.
4. Nonconvex points keep the best of several minima: a known second one moves along at every call,
   new ones are searched from other initial points in turn.

The state between calls is a `ProxState`. A second call with slightly different omega and V costs
two or three evaluations per point.

Points lie on the last axis of every array, so that the compiler vectorizes over them. Those of
large problems are moved to the first axis inside, which suits matrix products. A loss is compiled
twice: for all points, and for chunks of those that need more steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int
from scipy.special import ndtri

from dotphase.numerics.linalg import (
    UNROLL_LIMIT,
    Entries,
    added,
    dot,
    downhill,
    entries,
    is_positive_definite,
    largest,
    matvec,
    product,
    solve_columns,
    solve_symmetric,
    subtracted,
    trace,
    upper_rows,
)
from dotphase.numerics.selected_points import CHUNK, update_selected
from dotphase.numerics.sobol import sobol_points
from dotphase.numerics.taylor import Derivatives

#: ``(x, data) -> Derivatives`` of the loss of one point, x given as entries (`linalg`);
#: `data` is any pytree.
Loss = Callable[[Entries, Any], Derivatives]
#: ``(omega, V, data) -> X`` of one point, flattened.
Minimizer = Callable[[Array, Array, Any], Array]

#: Largest number of steps of all points together, which end when fewer than one in MANY is
#: unsettled.
FULL_STEPS, MANY = 7, 8
#: Largest number of steps of unsettled points, of known second minima, and of two searches for
#: another minimum.
MORE_STEPS = (40, 25, 25, 25)
#: Number of entries of the Hessians of one part of a large problem on a CPU: about the cache of a
#: core.
CACHED = 2**17
#: Newton step, in units of V^{1/2}, at which a point has settled. The step is taken without another
#: evaluation; the remaining error is of the order of its square.
SETTLED = 1e-5
#: Gain in the objective, relative to it, below which two minima count as the same one.
SAME_MINIMUM = 1e-9
#: A nonconvex point is searched for other minima at one call in this many.
TURNS = 4
#: Number of a call that searches all points, about four times as costly as another.
SEARCH_ALL = np.int32(-1)
#: Distance between two minima, in units of V^{1/2}, above which they are different.
MIN_DISTANCE = 1e-4
#: Backtracking factor.
BACKTRACKING = 0.25
#: Number of different probes.
PROBES = 16


class ProxState(NamedTuple):
    """State of the points between two calls.

    Attributes
    ----------
    x : minimizers, flattened over tokens and rank
    nonconvex : True for points whose objective is known to be nonconvex
    bistable : True for points with a known second minimum
    other : the lowest second minimum, where one is known
    """

    x: Float[Array, "dims points"]
    nonconvex: Bool[Array, " points"]
    bistable: Bool[Array, " points"]
    other: Float[Array, "dims points"]

    @classmethod
    def initial(cls, omega: Float[Array, "dims points"]) -> ProxState:
        """The state before the first call: minimizers at the centers of the quadratic part."""
        no_points = jnp.zeros(omega.shape[-1], bool)
        return cls(omega, no_points, no_points, omega)


@dataclass(frozen=True, eq=False)
class ExplicitProx:
    """A loss with an explicit proximal map, for kinks at which Newton steps do not settle."""

    derivatives: Loss
    minimizer: Minimizer

    def __call__(self, x: Entries, data: Any) -> Derivatives:
        return self.derivatives(x, data)


class ProximalProblem(NamedTuple):
    """Prox problems with one V; points on the last axis of every other leaf.

    Attributes
    ----------
    omega : centers of the quadratic part
    precision, spread : ``V^{-1}`` and ``V^{1/2}``
    data : arguments of the loss besides X; any pytree
    """

    omega: Float[Array, "dims points"]
    precision: Float[Array, "dims dims"]
    spread: Float[Array, "dims dims"]
    data: Any

    @property
    def unit(self) -> Float[Array, ""]:
        """Mean curvature of the quadratic part, the natural unit for shifts and gradients."""
        return trace(self.precision) / len(self.precision)


class Newton(NamedTuple):
    """A Newton iterate.

    Attributes
    ----------
    x : the best point so far, as entries (`dotphase.numerics.linalg`)
    value : the objective at x
    step_size : largest entry of the Newton step from x
    trial : the next point to evaluate
    """

    x: Any
    value: Float[Array, ""]
    step_size: Float[Array, ""]
    trial: Any


@lru_cache(maxsize=64)
def probe_directions(dims: int) -> Float[np.ndarray, "probes dims"]:
    """Points of the unit ball from a fixed low-discrepancy sequence, one for each call."""
    uniform = sobol_points(dims + 1, PROBES, np.random.default_rng(7))
    direction = ndtri(np.clip(uniform[:, :dims], 1e-9, 1 - 1e-9))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    # Radii in the outer half: no other minimum is close to the current one.
    return direction * (0.5 + 0.5 * uniform[:, dims:])


def vmap_points(function: Callable[..., Any]) -> Callable[..., Any]:
    """`jax.vmap` over the last axis of every argument and result."""
    return jax.vmap(function, in_axes=-1, out_axes=-1)


def proximal_map(
    loss: Loss, problem: ProximalProblem, state: ProxState, call: Int[Array, ""]
) -> ProxState:
    """Move every point to its global minimum, from its minimizer after the last call.

    The loss of one point has derivatives and must not be negative. The running number of the call
    chooses the probe. With `SEARCH_ALL` all points are searched for a second minimum.
    """
    problem, state = jax.tree.map(jnp.asarray, (problem, state))
    if isinstance(loss, ExplicitProx):
        V = problem.spread @ problem.spread
        x = vmap_points(lambda omega, data: loss.minimizer(omega, V, data))
        return state._replace(x=x(problem.omega, problem.data))

    def minimize(omega: Array, data: Any, state: ProxState) -> ProxState:
        return _minimize_globally(loss, problem._replace(omega=omega, data=data), state, call)

    return _in_chunks(minimize, problem.omega, problem.data, state)


def _in_chunks(function: Callable[..., Any], omega: Float[Array, "dims points"], *more: Any) -> Any:
    """Apply a function of points on the last axis to chunks that fit into the cache of a core.

    All points are one chunk on an accelerator.
    """
    dims, count = omega.shape
    chunk = max(CHUNK, 2 ** int(np.log2(CACHED / dims**2)))
    if chunk >= count or count % chunk or jax.default_backend() != "cpu":
        return function(omega, *more)

    def split(leaf: Array) -> Array:
        return jnp.moveaxis(leaf.reshape(*leaf.shape[:-1], -1, chunk), -2, 0)

    def join(leaf: Array) -> Array:
        leaf = jnp.moveaxis(leaf, 0, -2)
        return leaf.reshape(*leaf.shape[:-2], count)

    parts = jax.tree.map(split, (omega, *more))
    return jax.tree.map(join, jax.lax.map(lambda part: function(*part), parts))


def _minimize_globally(
    loss: Loss, problem: ProximalProblem, state: ProxState, call: Int[Array, ""]
) -> ProxState:
    """`proximal_map` of a smooth loss, for all points at once."""
    dims, count = problem.omega.shape
    axis = 0 if dims > UNROLL_LIMIT else -1
    omega, data, x, other = jax.tree.map(
        lambda leaf: jnp.moveaxis(leaf, -1, axis),
        (problem.omega, problem.data, state.x, state.other),
    )
    problem = problem._replace(omega=omega, data=data)
    probe = jnp.asarray(probe_directions(dims))[call % PROBES]
    newton = _newton(loss, problem, axis)

    def many_unsettled(carry: tuple[Array, Newton]) -> Array:
        steps, iterate = carry
        unsettled = jnp.sum(~newton.settled(iterate), dtype=jnp.int32)
        return (steps < FULL_STEPS) & (MANY * unsettled > count)

    # A loop instead of unrolled steps, which would repeat each other's exponentials when fused.
    _, iterate = jax.lax.while_loop(
        many_unsettled,
        lambda carry: (carry[0] + 1, newton.step(carry[1])),
        (jnp.zeros((), jnp.int32), newton.initial(x)),
    )
    value, convex = newton.evaluate(_in_ball(iterate.value, problem, probe, axis))
    nonconvex = state.nonconvex | ~convex | (value < iterate.value)
    in_turn = (jnp.arange(count) + call) % TURNS == 0
    searched = (nonconvex & in_turn) | (call == SEARCH_ALL)
    selections = jnp.stack([~newton.settled(iterate), state.bistable, searched])

    def improve(attempt: Array, part: _Minima, points: ProximalProblem) -> _Minima:
        """Minimize from the present point, the second minimum, the mirror image, or the probe."""
        origins = (
            lambda: part.x,
            lambda: part.other,
            lambda: -part.x,
            lambda: _in_ball(part.first_value, points, probe, axis),
        )
        origin = jax.lax.switch(attempt, origins)
        steps = jnp.asarray(MORE_STEPS)[attempt]
        x, value, settled = _minimize(loss, origin, points, steps, axis)
        distance = _each(largest, axis)(jnp.sqrt(problem.unit) * (x - part.x))
        is_first = attempt == 0
        lower = is_first | (value < part.value - SAME_MINIMUM * jnp.abs(part.value))
        distinct = ~is_first & (distance > MIN_DISTANCE) & settled
        higher_value = jnp.maximum(value, part.value)
        second = distinct & (higher_value < part.other_value)

        def chosen(condition: Array, new: Array, old: Array) -> Array:
            return jnp.where(jnp.expand_dims(condition, 1 + axis), new, old)

        return _Minima(
            x=chosen(lower, x, part.x),
            value=jnp.where(lower, value, part.value),
            first_value=jnp.where(is_first, value, part.first_value),
            bistable=part.bistable | distinct,
            other=chosen(second, chosen(lower, part.x, x), part.other),
            other_value=jnp.where(second, higher_value, part.other_value),
        )

    def improve_selected(stage: Array, minima: _Minima) -> _Minima:
        """Settle the unsettled points; move second minima along; search from two other origins."""

        def improve_often(part: _Minima, inputs: tuple[Array, Any]) -> _Minima:
            omega, data = inputs
            body = partial(improve, points=problem._replace(omega=omega, data=data))
            end = jnp.where(stage == len(selections) - 1, len(MORE_STEPS), stage + 1)
            return jax.lax.fori_loop(stage, end, body, part)

        inputs = (problem.omega, problem.data)
        return update_selected(selections[stage], improve_often, minima, inputs, axis)

    value = iterate.value
    minima = _Minima(
        newton.final(iterate), value, value, state.bistable, other, jnp.full_like(value, jnp.inf)
    )
    minima = jax.lax.fori_loop(0, len(selections), improve_selected, minima)
    x, other = (jnp.moveaxis(leaf, axis, -1) for leaf in (minima.x, minima.other))
    return ProxState(x, nonconvex, minima.bistable, other)


def response(
    loss: Loss, problem: ProximalProblem, x: Float[Array, "dims points"]
) -> Float[Array, "dims dims points"]:
    """``G = dg/domega = V^{-1} (dX/domega - 1)`` at the minimizers x.

    ``dX/domega = (V^{-1} + d^2 ell)^{-1} V^{-1}`` where the loss is smooth.
    """
    precision = problem.precision
    size = len(precision)

    def smooth(x: Entries, data: Any) -> Any:
        hessian = added(upper_rows(precision), upper_rows(loss(x, data).hessian))
        # Without the barrier the compiler repeats the Hessian for every entry of G.
        hessian = jax.lax.optimization_barrier(hessian)
        if not isinstance(hessian, tuple):
            return precision @ (solve_columns(hessian, precision) - jnp.eye(size))
        columns = [solve_symmetric(hessian, precision[k]) for k in range(size)]
        changes = [
            [columns[k][i] - (1.0 if i == k else 0.0) for i in range(size)] for k in range(size)
        ]
        return tuple(tuple(dot(precision[i], changes[k]) for k in range(size)) for i in range(size))

    if not isinstance(loss, ExplicitProx):
        return _in_chunks(
            lambda x, data: jnp.asarray(vmap_points(smooth)(entries(x), data)), x, problem.data
        )
    V, minimizer = problem.spread @ problem.spread, loss.minimizer

    def explicit(omega: Array, data: Any) -> Array:
        slope = jax.jacfwd(lambda center: minimizer(center, V, data))(omega)
        return precision @ (slope - jnp.eye(size))

    return vmap_points(explicit)(problem.omega, problem.data)


class _Minima(NamedTuple):
    """Minimizers and their objectives, before the search and now, and the second minima."""

    x: Float[Array, "dims points"]
    value: Float[Array, " points"]
    first_value: Float[Array, " points"]
    bistable: Bool[Array, " points"]
    other: Float[Array, "dims points"]
    other_value: Float[Array, " points"]


def _each(function: Callable[..., Any], axis: int) -> Callable[..., Any]:
    return jax.vmap(function, in_axes=axis, out_axes=axis)


def _join(x: Any) -> Float[Array, "dims points"]:
    return jnp.stack(x) if isinstance(x, tuple) else x


def _split(x: Float[Array, "dims points"], axis: int) -> Any:
    """Split vectors on the last axis into their entries; leave those on the first axis."""
    return entries(x) if axis else x


def _newton(loss: Loss, problem: ProximalProblem, axis: int) -> _NewtonIteration:
    """Make the functions of a batched Newton iteration.

    An iterate holds no derivatives, although they are computed again: the compiler makes one kernel
    for every array that a step returns, and derivatives have many entries.
    """
    precision, unit = problem.precision, problem.unit
    curvature = upper_rows(precision)
    each = partial(_each, axis=axis)

    def objective(x: Entries, omega: Entries, data: Any) -> Derivatives:
        value, gradient, hessian = loss(x, data)
        shift = subtracted(x, omega)
        force = product(precision, shift)
        return Derivatives(
            0.5 * dot(shift, force) + value,
            added(force, entries(gradient)),
            added(curvature, upper_rows(hessian)),
        )

    def initial(x: Entries) -> Newton:
        """The iterate before the first evaluation."""
        infinite = jnp.asarray(jnp.inf)
        return Newton(x, infinite, infinite, x)

    def step(iterate: Newton) -> Newton:
        """Evaluate the trial point; accept it and propose a Newton step, or backtrack.

        A Hessian that is not positive definite is shifted until it is.
        """
        # Without the barrier the compiler repeats the derivatives for every entry of the step.
        trial = jax.lax.optimization_barrier(each(objective)(iterate.trial, center, problem.data))
        newton_step = downhill(trial.hessian, trial.gradient, 0.05 * unit, axis)
        return each(_accept_or_backtrack)(iterate, trial.value, newton_step)

    def evaluate(x: Entries, omega: Entries, data: Any) -> tuple[Array, Array]:
        value, _, hessian = objective(x, omega, data)
        return value, is_positive_definite(hessian)

    def settled(iterate: Newton) -> Bool[Array, " points"]:
        return iterate.step_size * jnp.sqrt(unit) <= SETTLED

    def final(iterate: Newton) -> Float[Array, "dims points"]:
        is_settled = jnp.expand_dims(settled(iterate), 1 + axis)
        return jnp.where(is_settled, _join(iterate.trial), _join(iterate.x))

    center = _split(problem.omega, axis)
    return _NewtonIteration(
        initial=lambda x: each(initial)(_split(x, axis)),
        step=step,
        evaluate=lambda x: each(evaluate)(_split(x, axis), center, problem.data),
        settled=settled,
        final=final,
    )


def _accept_or_backtrack(iterate: Newton, value: Array, newton_step: Entries) -> Newton:
    """Continue with a Newton step from a trial point that is no worse; else shorten the step."""
    x, trial = iterate.x, iterate.trial
    lower = value <= iterate.value + 1e-14 * (1 + jnp.abs(iterate.value))
    shorter = jax.tree.map(lambda start, end: start + BACKTRACKING * (end - start), x, trial)
    accepted = Newton(trial, value, largest(newton_step), subtracted(trial, newton_step))
    refused = iterate._replace(trial=shorter)
    return jax.tree.map(lambda new, old: jnp.where(lower, new, old), accepted, refused)


class _NewtonIteration(NamedTuple):
    """Functions of a batched Newton iteration.

    Attributes
    ----------
    initial : points -> iterates
    step : iterates -> iterates after one step
    evaluate : points -> their objectives, and True for positive definite Hessians
    settled : iterates -> True for those that have settled
    final : iterates -> points
    """

    initial: Callable[[Array], Newton]
    step: Callable[[Newton], Newton]
    evaluate: Callable[[Array], tuple[Array, Array]]
    settled: Callable[[Newton], Array]
    final: Callable[[Newton], Array]


def _minimize(
    loss: Loss, x: Float[Array, "dims points"], problem: ProximalProblem, steps: Array, axis: int
) -> tuple[Float[Array, "dims points"], Float[Array, " points"], Bool[Array, " points"]]:
    """Take Newton steps until all points have settled, at most `steps`.

    Returns the points, their objectives, and True for those that have settled.
    """
    newton = _newton(loss, problem, axis)

    def unfinished(carry: tuple[Array, Newton]) -> Array:
        return (carry[0] <= steps) & ~jnp.all(newton.settled(carry[1]))

    def advance(carry: tuple[Array, Newton]) -> tuple[Array, Newton]:
        return carry[0] + 1, newton.step(carry[1])

    initial = (jnp.zeros((), int), newton.initial(x))
    iterate = jax.lax.while_loop(unfinished, advance, initial)[1]
    return newton.final(iterate), iterate.value, newton.settled(iterate)


def _in_ball(
    value: Float[Array, " points"],
    problem: ProximalProblem,
    probe: Float[Array, " dims"],
    axis: int,
) -> Float[Array, "dims points"]:
    """Map the probe into each point's ball ``(X - omega)^T V^{-1} (X - omega) <= 2 E``."""
    radius = jnp.sqrt(2 * jnp.maximum(value, 0.0))
    direction = matvec(problem.spread, probe)
    return problem.omega + jnp.expand_dims(radius, 1 + axis) * jnp.expand_dims(direction, axis)
