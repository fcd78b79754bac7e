"""The proximal map, for many points at once, at its global minimum.

For each point the map solves

    X = argmin_X  sum_l 1/2 (X_l - omega_l)^T V_l^{-1} (X_l - omega_l) + ell(X; T),

a problem of dimension D = L r that is not convex when V is large: a few per cent of the
points have several minima and the lowest one changes as omega moves. Work is spent where
it is needed:

1. all points take safeguarded Newton steps from where they were last time, while many have not
   settled;
2. the points that have not settled are gathered and iterated until they have;
3. one probe per call looks for lost convexity. A lower minimum of a point with objective
   E can only lie in the ball ``(X - omega)^T V^{-1} (X - omega) <= 2 E``, because ell is
   not negative; the probe wanders through that ball from call to call, and a point whose
   Hessian is not positive definite there is marked as suspect, for good;
4. suspect points are minimised again from other starts and keep the best: those that have
   shown a second minimum at every call, the others in turn.

The state carried between calls is a `ProxState`; a caller that changes omega and V a little
and calls again pays for two or three evaluations a point.

Points lie on the last axis of every array, so that the compiler vectorises over them. Inside, those
of large problems are moved to the first one, where matrix products want them. What a loss
computes is compiled twice: for all points, and for those that need more.
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
from dotphase.numerics.sobol import sobol_points
from dotphase.numerics.taylor import Derivatives

#: ``(x, data) -> Derivatives`` of the loss of one point, x given as entries (`linalg`);
#: `data` is any pytree.
Loss = Callable[[Entries, Any], Derivatives]
#: ``(omega, V, data) -> X`` of one point, flattened.
Minimizer = Callable[[Array, Array, Any], Array]

#: Most steps that all points take, and one in how many has not settled while they do.
FULL_STEPS, MANY = 7, 8
#: Most steps of those that have not settled, and of two searches for another minimum.
MORE_STEPS = (40, 25, 25)
#: Points that are worked on together where not all are: few on a CPU, where they stay in its
#: cache; many on an accelerator, where a step costs the same time for any number of them.
CHUNK, CHUNK_ON_ACCELERATOR = 128, 2**15
#: Entries of the Hessians of the points that are worked on from beginning to end before the next,
#: on a CPU: about what the cache of a core holds.
CACHED = 2**17
#: Newton step, in units of V^{1/2}, at which a point has settled: it is taken without looking, and
#: what is left is of the order of its square.
SETTLED = 1e-5
#: Gain in the objective, relative to it, below which two minima count as the same one.
SAME_MINIMUM = 1e-9
#: A suspect without a known second minimum is searched at one call in this many.
TURNS = 4
#: Distance between two minima, in units of V^{1/2}, above which they are different ones.
APART = 1e-4
#: How far a step that was refused is gone, at the next try.
BACK = 0.25
#: How many different probes there are; after as many calls all of them have been used.
PROBES = 16


class ProxState(NamedTuple):
    """What the map remembers of its points between two calls.

    Attributes
    ----------
    x : minimizers, flattened over tokens and rank
    nonconvex : points whose objective was seen not to be convex
    bistable : points that were seen to have a second minimum
    """

    x: Float[Array, "dims points"]
    nonconvex: Bool[Array, " points"]
    bistable: Bool[Array, " points"]

    @classmethod
    def initial(cls, omega: Float[Array, "dims points"]) -> ProxState:
        """Where to start when nothing is known: at the centres of the quadratic part."""
        nowhere = jnp.zeros(omega.shape[-1], bool)
        return cls(omega, nowhere, nowhere)


@dataclass(frozen=True, eq=False)
class ExplicitProx:
    """A loss whose proximal map is given: one with kinks, where Newton steps do not settle."""

    derivatives: Loss
    minimizer: Minimizer

    def __call__(self, x: Entries, data: Any) -> Derivatives:
        return self.derivatives(x, data)


class ProximalProblem(NamedTuple):
    """Prox problems with one V; points on the last axis of every other leaf.

    Attributes
    ----------
    omega : centres of the quadratic part
    precision, spread : ``V^{-1}`` and ``V^{1/2}``
    data : what the loss needs besides X; any pytree
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
    x : the best place so far, as entries (`dotphase.numerics.linalg`)
    value : the objective there
    way : largest entry of the Newton step from there
    ahead : the place to look at next
    """

    x: Any
    value: Float[Array, ""]
    way: Float[Array, ""]
    ahead: Any


@lru_cache(maxsize=64)
def probe_directions(dims: int) -> Float[np.ndarray, "probes dims"]:
    """Points of the unit ball from a fixed low-discrepancy sequence, one for each call in turn."""
    uniform = sobol_points(dims + 1, PROBES, np.random.default_rng(7))
    direction = ndtri(np.clip(uniform[:, :dims], 1e-9, 1 - 1e-9))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    # Radii in the outer half: close to the current minimum there is nothing to find.
    return direction * (0.5 + 0.5 * uniform[:, dims:])


def vmap_points(function: Callable[..., Any]) -> Callable[..., Any]:
    """`jax.vmap` over the last axis of every argument and result."""
    return jax.vmap(function, in_axes=-1, out_axes=-1)


def proximal_map(
    loss: Loss, problem: ProximalProblem, track: ProxState, call: Int[Array, ""]
) -> ProxState:
    """Move every point to its global minimum, starting from where the last call has left it.

    The loss of one point comes with its derivatives and must not be negative; the running number of
    the call chooses the probe.
    """
    problem, track = jax.tree.map(jnp.asarray, (problem, track))
    if isinstance(loss, ExplicitProx):
        V = problem.spread @ problem.spread
        x = vmap_points(lambda omega, data: loss.minimizer(omega, V, data))
        return track._replace(x=x(problem.omega, problem.data))

    def some(omega: Array, data: Any, track: ProxState) -> ProxState:
        return _globally(loss, problem._replace(omega=omega, data=data), track, call)

    return _in_chunks(some, problem.omega, problem.data, track)


def _in_chunks(function: Callable[..., Any], omega: Float[Array, "dims points"], *more: Any) -> Any:
    """A function of points on the last axis, applied to as many at a time as a core's cache holds
    what it computes of: of large problems few. All at once on an accelerator."""
    dims, count = omega.shape
    chunk = max(CHUNK, 2 ** int(np.log2(CACHED / dims**2)))
    if chunk >= count or count % chunk or jax.default_backend() != "cpu":
        return function(omega, *more)

    def apart(leaf: Array) -> Array:
        return jnp.moveaxis(leaf.reshape(*leaf.shape[:-1], -1, chunk), -2, 0)

    def joined(leaf: Array) -> Array:
        leaf = jnp.moveaxis(leaf, 0, -2)
        return leaf.reshape(*leaf.shape[:-2], count)

    parts = jax.tree.map(apart, (omega, *more))
    return jax.tree.map(joined, jax.lax.map(lambda part: function(*part), parts))


def _globally(
    loss: Loss, problem: ProximalProblem, track: ProxState, call: Int[Array, ""]
) -> ProxState:
    """`proximal_map` of a smooth loss, for all points at once."""
    dims, count = problem.omega.shape
    axis = 0 if dims > UNROLL_LIMIT else -1
    omega, data, start = jax.tree.map(
        lambda leaf: jnp.moveaxis(leaf, -1, axis), (problem.omega, problem.data, track.x)
    )
    problem = problem._replace(omega=omega, data=data)
    probe = jnp.asarray(probe_directions(dims))[call % PROBES]
    newton = _newton(loss, problem, axis)

    def many_left(carry: tuple[Array, Newton]) -> Array:
        taken, state = carry
        left = jnp.sum(~newton.settled(state), dtype=jnp.int32)
        return (taken < FULL_STEPS) & (MANY * left > count)

    # A loop and not straight code: fused steps would compute each other's exponentials again.
    begun = (jnp.zeros((), jnp.int32), newton.begin(start))
    _, now = jax.lax.while_loop(
        many_left, lambda carry: (carry[0] + 1, newton.step(carry[1])), begun
    )
    value, convex = newton.look(_in_ball(now.value, problem, probe, axis))
    suspect = track.nonconvex | ~convex | (value < now.value)
    in_turn = (jnp.arange(count) + call) % TURNS == 0
    chosen = track.bistable | (suspect & in_turn)
    unsettled = ~newton.settled(now)

    def improve(number: Array, part: _Guess, some: ProximalProblem) -> _Guess:
        """Minimise from where a point is, from its mirror image, or from the probe."""
        origins = (lambda: part.x, lambda: -part.x, lambda: _in_ball(part.reach, some, probe, axis))
        origin = jax.lax.switch(number, origins)
        x, value, settled = _minimise(loss, origin, some, jnp.asarray(MORE_STEPS)[number], axis)
        scale = jnp.sqrt(problem.unit)
        apart = _each(lambda one, other: largest(scale * (one - other)), axis)(x, part.x) > APART
        own = number == 0
        lower = own | (value < part.value - SAME_MINIMUM * jnp.abs(part.value))
        return _Guess(
            x=jnp.where(jnp.expand_dims(lower, 1 + axis), x, part.x),
            value=jnp.where(lower, value, part.value),
            reach=jnp.where(own, value, part.reach),
            bistable=part.bistable | (~own & apart & settled),
        )

    def attempt(number: Array, guess: _Guess) -> _Guess:
        selected = jnp.where(number == 0, unsettled, chosen)
        return _where_selected(selected, partial(improve, number), guess, problem, axis)

    guess = _Guess(newton.end(now), now.value, now.value, track.bistable)
    guess = jax.lax.fori_loop(0, len(MORE_STEPS), attempt, guess)
    return ProxState(jnp.moveaxis(guess.x, axis, -1), suspect, guess.bistable)


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
        # Computed once: entries of G would otherwise each begin anew.
        hessian = jax.lax.optimization_barrier(hessian)
        if not isinstance(hessian, tuple):
            return precision @ (solve_columns(hessian, precision) - jnp.eye(size))
        columns = [solve_symmetric(hessian, precision[k]) for k in range(size)]
        moved = [
            [columns[k][i] - (1.0 if i == k else 0.0) for i in range(size)] for k in range(size)
        ]
        return tuple(tuple(dot(precision[i], moved[k]) for k in range(size)) for i in range(size))

    if not isinstance(loss, ExplicitProx):
        return _in_chunks(
            lambda x, data: jnp.asarray(vmap_points(smooth)(entries(x), data)), x, problem.data
        )
    V, minimizer = problem.spread @ problem.spread, loss.minimizer

    def given(omega: Array, data: Any) -> Array:
        slope = jax.jacfwd(lambda centre: minimizer(centre, V, data))(omega)
        return precision @ (slope - jnp.eye(size))

    return vmap_points(given)(problem.omega, problem.data)


class _Guess(NamedTuple):
    """Minimisers and their objectives; those that the search began with; second minima seen."""

    x: Float[Array, "dims points"]
    value: Float[Array, " points"]
    reach: Float[Array, " points"]
    bistable: Bool[Array, " points"]


def _each(function: Callable[..., Any], axis: int) -> Callable[..., Any]:
    return jax.vmap(function, in_axes=axis, out_axes=axis)


def _joined(x: Any) -> Float[Array, "dims points"]:
    return jnp.stack(x) if isinstance(x, tuple) else x


def _split(x: Float[Array, "dims points"], axis: int) -> Any:
    """Vectors on the last axis as their entries; on the first one as they are."""
    return entries(x) if axis else x


def _newton(loss: Loss, problem: ProximalProblem, axis: int) -> _Pieces:
    """The pieces of a batched Newton iteration.

    An iterate is no more than what cannot be computed again: the compiler makes one kernel of
    every array that a step hands on, and derivatives have many entries.
    """
    precision, unit = problem.precision, problem.unit
    curvature = upper_rows(precision)
    each = partial(_each, axis=axis)

    def objective(x: Entries, omega: Entries, data: Any) -> Derivatives:
        value, gradient, hessian = loss(x, data)
        away = subtracted(x, omega)
        pull = product(precision, away)
        return Derivatives(
            0.5 * dot(away, pull) + value,
            added(pull, entries(gradient)),
            added(curvature, upper_rows(hessian)),
        )

    def begin(x: Entries) -> Newton:
        """Before anything is known."""
        infinite = jnp.asarray(jnp.inf)
        return Newton(x, infinite, infinite, x)

    def step(now: Newton) -> Newton:
        """Look ahead: go there and a Newton step on, or most of the way back if it is no better.

        A Hessian that is not positive definite is shifted until it is.
        """
        # Computed once: entries of the step would otherwise each begin anew.
        found = jax.lax.optimization_barrier(each(objective)(now.ahead, centre, problem.data))
        down = downhill(found.hessian, found.gradient, 0.05 * unit, axis)
        return each(choose)(now, found.value, down)

    def choose(now: Newton, value: Array, down: Entries) -> Newton:
        lower = value <= now.value + 1e-14 * (1 + jnp.abs(now.value))
        back = jax.tree.map(lambda x, ahead: x + BACK * (ahead - x), now.x, now.ahead)
        there = Newton(now.ahead, value, largest(down), subtracted(now.ahead, down))
        here = now._replace(ahead=back)
        return jax.tree.map(lambda new, old: jnp.where(lower, new, old), there, here)

    def look(x: Entries, omega: Entries, data: Any) -> tuple[Array, Array]:
        value, _, hessian = objective(x, omega, data)
        return value, is_positive_definite(hessian)

    def settled(now: Newton) -> Bool[Array, " points"]:
        return now.way * jnp.sqrt(unit) <= SETTLED

    def end(now: Newton) -> Float[Array, "dims points"]:
        there = jnp.expand_dims(settled(now), 1 + axis)
        return jnp.where(there, _joined(now.ahead), _joined(now.x))

    centre = _split(problem.omega, axis)
    return _Pieces(
        begin=lambda x: each(begin)(_split(x, axis)),
        step=step,
        look=lambda x: each(look)(_split(x, axis), centre, problem.data),
        settled=settled,
        end=end,
    )


class _Pieces(NamedTuple):
    """How to begin at a place, step, look at a place, tell what has settled, and end."""

    begin: Callable[[Array], Newton]
    step: Callable[[Newton], Newton]
    look: Callable[[Array], tuple[Array, Array]]
    settled: Callable[[Newton], Array]
    end: Callable[[Newton], Array]


def _minimise(
    loss: Loss, x: Float[Array, "dims points"], some: ProximalProblem, steps: Array, axis: int
) -> tuple[Float[Array, "dims points"], Float[Array, " points"], Bool[Array, " points"]]:
    """Newton steps for a batch until all have settled or `steps` are spent: where they are, their
    objectives, which have settled."""
    newton = _newton(loss, some, axis)

    def unfinished(carry: tuple[Array, Newton]) -> Array:
        return (carry[0] <= steps) & ~jnp.all(newton.settled(carry[1]))

    def advance(carry: tuple[Array, Newton]) -> tuple[Array, Newton]:
        return carry[0] + 1, newton.step(carry[1])

    begun = (jnp.zeros((), int), newton.begin(x))
    found = jax.lax.while_loop(unfinished, advance, begun)[1]
    return newton.end(found), found.value, newton.settled(found)


def _in_ball(
    value: Float[Array, " points"],
    problem: ProximalProblem,
    probe: Float[Array, " dims"],
    axis: int,
) -> Float[Array, "dims points"]:
    """The probe, mapped into each point's ball ``(X - omega)^T V^{-1} (X - omega) <= 2 E``."""
    reach = jnp.sqrt(2 * jnp.maximum(value, 0.0))
    direction = matvec(problem.spread, probe)
    return problem.omega + jnp.expand_dims(reach, 1 + axis) * jnp.expand_dims(direction, axis)


def _where_selected(
    selected: Bool[Array, " points"],
    improve: Callable[[_Guess, ProximalProblem], _Guess],
    guess: _Guess,
    problem: ProximalProblem,
    axis: int,
) -> _Guess:
    """Apply `improve` to the selected points only, in chunks of fixed size.

    Compiled shapes are fixed, so the selected points are gathered `CHUNK` at a time; the
    number of chunks worked on, not their shape, follows the number selected.
    """
    total = selected.shape[0]
    chunk = min(CHUNK if jax.default_backend() == "cpu" else CHUNK_ON_ACCELERATOR, total)
    given = (problem.omega, problem.data)

    def gather_and_improve(guess: _Guess) -> _Guess:
        count = jnp.sum(selected, dtype=jnp.int32)
        rank = jnp.cumsum(selected, dtype=jnp.int32) - 1
        # order[k] is the k-th selected point; slots past the end stay at `total`.
        order = jnp.full(total + chunk, total, jnp.int32)
        order = order.at[jnp.where(selected, rank, total + chunk)].set(
            jnp.arange(total, dtype=jnp.int32), mode="drop"
        )

        def work(carry: tuple[Array, _Guess]) -> tuple[Array, _Guess]:
            begin, current = carry
            index = jax.lax.dynamic_slice(order, (begin,), (chunk,))
            # Slots past the end repeat the first selected point; their result is dropped.
            safe = jnp.where(index < total, index, order[0])
            some, part = jax.tree.map(lambda leaf: leaf[_at(safe, axis)], (given, current))
            better = improve(part, problem._replace(omega=some[0], data=some[1]))
            merged = jax.tree.map(
                lambda old, new: old.at[_at(index, axis)].set(new, mode="drop"), current, better
            )
            return begin + chunk, merged

        begin = jnp.zeros((), jnp.int32)
        return jax.lax.while_loop(lambda carry: carry[0] < count, work, (begin, guess))[1]

    return jax.lax.cond(jnp.any(selected), gather_and_improve, lambda guess: guess, guess)


def _at(index: Int[Array, " some"], axis: int) -> Any:
    return (..., index) if axis else index
