"""The proximal map, for many points at once, at its global minimum.

For each point the map solves

    X = argmin_X  sum_l 1/2 (X_l - omega_l)^T V_l^{-1} (X_l - omega_l) + ell(X; T),

a problem of dimension D = L r that is not convex when V is large: a few per cent of the
points have several minima and the lowest one changes as omega moves. Work is spent where
it is needed:

1. every point takes two safeguarded Newton steps from where it was last time;
2. the points that have not settled are gathered and iterated until they have;
3. one probe per call looks for lost convexity. A lower minimum of a point with objective
   E can only lie in the ball ``(X - omega)^T V^{-1} (X - omega) <= 2 E``, because ell is
   not negative; the probe wanders through that ball from call to call, and a point whose
   Hessian is not positive definite there is marked as suspect, for good;
4. suspect points are minimised again from other starts and keep the best: those that have
   shown a second minimum at every call, the others in turn.

The state carried between calls is a `Track`; a caller that changes omega and V a little
and calls again pays for about three evaluations a point. Points lie on the last axis of
every array, so that the compiler vectorises over them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int
from scipy.special import ndtri
from scipy.stats import qmc

from dotphase._numerics.linalg import (
    Entries,
    added,
    dot,
    entries,
    is_positive_definite,
    largest,
    matvec,
    product,
    shifted,
    shifted_to_positive,
    solve_symmetric,
    subtracted,
    trace,
    upper_rows,
)
from dotphase._numerics.taylor import Derivatives

#: ``(x, data) -> Derivatives`` of the loss of one point, x given as entries (`linalg`);
#: `data` is any pytree.
Loss = Callable[[Entries, Any], Derivatives]

FULL_STEPS = 2
SETTLE_STEPS = 40
SEARCH_STEPS = 25
CHUNK = 128
#: Gradient, in units of the mean curvature of the quadratic part, at which a point has settled.
SETTLED = 1e-8
#: Gain in the objective, relative to it, below which two minima count as the same one.
SAME_MINIMUM = 1e-9
#: A suspect without a known second minimum is searched at one call in this many.
TURNS = 4
#: Distance between two minima, in units of V^{1/2}, above which they are different ones.
APART = 1e-4
#: How many different probes there are; after as many calls all of them have been used.
PROBES = 16


class Track(NamedTuple):
    """What the map remembers of its points between two calls.

    Attributes
    ----------
    x : minimisers, flattened over tokens and rank
    suspect : points whose objective was seen not to be convex
    rival : points that were seen to have a second minimum
    """

    x: Float[Array, "dims points"]
    suspect: Bool[Array, " points"]
    rival: Bool[Array, " points"]

    @classmethod
    def fresh(cls, omega: Float[Array, "dims points"]) -> Track:
        """Where to start when nothing is known: at the centres of the quadratic part."""
        nowhere = jnp.zeros(omega.shape[-1], bool)
        return cls(omega, nowhere, nowhere)


class Problem(NamedTuple):
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
    """A Newton iterate, the derivatives there, and the shift that made its last step safe.

    Vectors are entries and the Hessian upper rows, as in `dotphase._numerics.linalg`.
    """

    x: Any
    at: Derivatives
    shift: Float[Array, ""]


@lru_cache(maxsize=64)
def probe_directions(dims: int) -> Float[np.ndarray, "probes dims"]:
    """Points of the unit ball from a fixed low-discrepancy sequence, one for each call in turn."""
    uniform = qmc.Sobol(dims + 1, scramble=True, rng=np.random.default_rng(7)).random(PROBES)
    direction = ndtri(np.clip(uniform[:, :dims], 1e-9, 1 - 1e-9))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    # Radii in the outer half: close to the current minimum there is nothing to find.
    return direction * (0.5 + 0.5 * uniform[:, dims:])


def over_points(function: Callable[..., Any]) -> Callable[..., Any]:
    """`jax.vmap` over the last axis of every argument and result."""
    return jax.vmap(function, in_axes=-1, out_axes=-1)


def proximal_map(loss: Loss, problem: Problem, track: Track, call: Int[Array, ""]) -> Track:
    """Move every point to its global minimum, starting from where it was.

    Parameters
    ----------
    loss : callable
        ``ell`` of one point with its derivatives; must not be negative.
    problem : Problem
        The points.
    track : Track
        From the last call; `Track.fresh` at first.
    call : int
        Running number of the call, which chooses the probe.
    """
    problem, track = jax.tree.map(jnp.asarray, (problem, track))
    dims, count = problem.omega.shape
    probe = jnp.asarray(probe_directions(dims))[call % PROBES]
    newton = _newton(loss, problem)

    def settle(state: _Guess, omega: Array, data: Any) -> _Guess:
        found = _minimise(loss, state.x, problem._replace(omega=omega, data=data), SETTLE_STEPS)
        return state._replace(x=_stacked(found.x), value=found.at.value)

    def search(state: _Guess, omega: Array, data: Any) -> _Guess:
        some = problem._replace(omega=omega, data=data)
        settled = _newton(loss, some).settled
        starts = jnp.stack([-state.x, _in_ball(state.value, some, probe)])

        # A loop over the starts: what is inside is compiled once.
        def try_start(which: Array, best: _Guess) -> _Guess:
            other = _minimise(loss, starts[which], some, SEARCH_STEPS)
            x, value = _stacked(other.x), other.at.value
            apart = largest(jnp.sqrt(some.unit) * (x - best.x)) > APART
            lower = value < best.value - SAME_MINIMUM * jnp.abs(best.value)
            return _Guess(
                x=jnp.where(lower, x, best.x),
                value=jnp.where(lower, value, best.value),
                rival=best.rival | (apart & settled(other)),
            )

        return jax.lax.fori_loop(0, len(starts), try_start, state)

    # A loop and not straight code: fused steps would compute each other's exponentials again.
    now = newton.evaluate(track.x)
    now = jax.lax.fori_loop(0, FULL_STEPS, lambda _, state: newton.step(state), now)
    there = newton.evaluate(_in_ball(now.at.value, problem, probe)).at
    convex = over_points(is_positive_definite)(there.hessian)
    suspect = track.suspect | ~convex | (there.value < now.at.value)

    guess = _Guess(_stacked(now.x), now.at.value, track.rival)
    guess = _where_selected(~newton.settled(now), settle, guess, problem)
    in_turn = (jnp.arange(count) + call) % TURNS == 0
    guess = _where_selected(track.rival | (suspect & in_turn), search, guess, problem)
    return Track(guess.x, suspect, guess.rival)


class _Guess(NamedTuple):
    x: Float[Array, "dims points"]
    value: Float[Array, " points"]
    rival: Bool[Array, " points"]


def _stacked(x: Any) -> Float[Array, "dims points"]:
    return jnp.stack(x) if isinstance(x, tuple) else x


def _newton(loss: Loss, problem: Problem) -> _Pieces:
    """The pieces of a batched Newton iteration: two beginnings, a step, a test for its end."""
    precision, unit = problem.precision, problem.unit
    curvature = upper_rows(precision)
    centre = entries(problem.omega)

    def objective(x: Entries, omega: Entries, data: Any) -> Derivatives:
        value, gradient, hessian = loss(x, data)
        away = subtracted(x, omega)
        pull = product(precision, away)
        return Derivatives(
            0.5 * dot(away, pull) + value,
            added(pull, entries(gradient)),
            added(curvature, upper_rows(hessian)),
        )

    def evaluate(x: Entries, omega: Entries, data: Any) -> Newton:
        at = objective(x, omega, data)
        return Newton(x, at, jnp.zeros_like(at.value))

    def begin(x: Entries) -> Newton:
        """Before anything is known; one step from here does no more than evaluate."""
        flat = upper_rows(jnp.eye(len(x)))
        infinite = Derivatives(jnp.asarray(jnp.inf), jax.tree.map(jnp.zeros_like, x), flat)
        return Newton(x, infinite, jnp.zeros(()))

    def step(now: Newton, omega: Entries, data: Any) -> Newton:
        """One Newton step, kept only if it does not raise the objective.

        A Hessian that is not positive definite is shifted until it is; a step that was
        refused is tried again with a larger shift (Levenberg's rule), one that was taken
        relaxes it.
        """
        safe = shifted(shifted_to_positive(now.at.hessian, 0.05 * unit), now.shift)
        x = subtracted(now.x, solve_symmetric(safe, now.at.gradient))
        at = objective(x, omega, data)
        better = at.value <= now.at.value + 1e-14 * (1 + jnp.abs(now.at.value))
        relaxed = jnp.where(now.shift < 1e-3 * unit, 0.0, 0.1 * now.shift)
        raised = jnp.maximum(10 * now.shift, 0.1 * unit)
        taken = Newton(x, at, relaxed)
        refused = now._replace(shift=raised)
        return jax.tree.map(lambda new, old: jnp.where(better, new, old), taken, refused)

    def settled(now: Newton) -> Bool[Array, ""]:
        return largest(now.at.gradient) <= SETTLED * unit

    def begin_all(x: Float[Array, "dims points"]) -> Newton:
        return over_points(begin)(entries(x))

    def evaluate_all(x: Float[Array, "dims points"]) -> Newton:
        return over_points(evaluate)(entries(x), centre, problem.data)

    def step_all(now: Newton) -> Newton:
        return over_points(step)(now, centre, problem.data)

    return _Pieces(begin_all, evaluate_all, step_all, over_points(settled))


class _Pieces(NamedTuple):
    begin: Callable[[Array], Newton]
    evaluate: Callable[[Array], Newton]
    step: Callable[[Newton], Newton]
    settled: Callable[[Newton], Array]


def _minimise(loss: Loss, x: Float[Array, "dims points"], some: Problem, steps: int) -> Newton:
    """Newton steps for a batch until all have settled or `steps` are spent."""
    newton = _newton(loss, some)

    def unfinished(carry: tuple[Array, Newton]) -> Array:
        return (carry[0] <= steps) & ~(jnp.all(newton.settled(carry[1])) & (carry[0] > 0))

    def advance(carry: tuple[Array, Newton]) -> tuple[Array, Newton]:
        return carry[0] + 1, newton.step(carry[1])

    # Evaluating is left to the first step: what a loss computes is compiled once, not twice.
    return jax.lax.while_loop(unfinished, advance, (jnp.zeros((), int), newton.begin(x)))[1]


def _in_ball(
    value: Float[Array, " points"], problem: Problem, probe: Float[Array, " dims"]
) -> Float[Array, "dims points"]:
    """The probe, mapped into each point's ball ``(X - omega)^T V^{-1} (X - omega) <= 2 E``."""
    reach = jnp.sqrt(2 * jnp.maximum(value, 0.0))
    return problem.omega + reach * matvec(problem.spread, probe)[:, None]


def _where_selected(
    selected: Bool[Array, " points"],
    improve: Callable[[_Guess, Array, Any], _Guess],
    guess: _Guess,
    problem: Problem,
) -> _Guess:
    """Apply `improve` to the selected points only, in chunks of fixed size.

    Compiled shapes are fixed, so the selected points are gathered `CHUNK` at a time; the
    number of chunks worked on, not their shape, follows the number selected.
    """
    total = selected.shape[0]
    chunk = min(CHUNK, total)
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
            some, part = jax.tree.map(lambda leaf: leaf[..., safe], (given, current))
            better = improve(part, *some)
            merged = jax.tree.map(
                lambda old, new: old.at[..., index].set(new, mode="drop"), current, better
            )
            return begin + chunk, merged

        begin = jnp.zeros((), jnp.int32)
        return jax.lax.while_loop(lambda carry: carry[0] < count, work, (begin, guess))[1]

    return jax.lax.cond(jnp.any(selected), gather_and_improve, lambda guess: guess, guess)
