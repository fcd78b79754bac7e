"""Averages over the Gaussian fields: one compiled call for each block of points.

An `Evaluator` is a model whose numbers are on the device and whose functions are compiled. Every
number of points is worked through in blocks of one size, so that a function compiled once serves
all of them; blocks are shared out to the cores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, lru_cache
from operator import attrgetter
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dotphase.model import Model
from dotphase.model.symmetry import sign_flips
from dotphase.numerics.proximal_map import SEARCH_ALL, ProxState
from dotphase.numerics.quadrature import N_SCRAMBLES, gaussian_blocks
from dotphase.runtime.compiled_once import CompiledOnce
from dotphase.runtime.memoize import Identity, memoize
from dotphase.runtime.threads import map_blocks
from dotphase.theory.coordinates import Coordinates
from dotphase.theory.driver import before_evaluation
from dotphase.theory.overlaps import Conjugates, Overlaps, shapes_of
from dotphase.theory.responses import Responses, mean_responses
from dotphase.theory.state_evolution import Averages, force_averages, initial_prox_state

#: Fraction of the points found nonconvex by the first probe above which all are searched.
MANY_NONCONVEX = 0.01
#: State of the proximal map, one for each block of points.
ProxStates = tuple[Any, ...]


class Mirror(Enum):
    """Changes of signs of all fields of a kind under which the proximal problem is the same.

    If the loss is the same for (X, h*) and (-X, -h*), and m = 0, then the change of all signs
    changes that of X and g: E[g] = 0. If T is even in h* and theta = 0, then the change of the
    teacher's signs changes nothing: E[g y^T] = 0. One point of each pair is then enough, and odd
    averages vanish.
    """

    BOTH = "xi and y"
    TEACHER = "y"


@dataclass(frozen=True)
class Expectations:
    """Averages at given overlaps.

    Attributes
    ----------
    per_scramble : averages with one row per scramble
    mean : averages over all scrambles
    prox_states : state of the proximal map at the end, for each block of points
    """

    per_scramble: Any
    mean: Any
    prox_states: ProxStates


class Evaluator:
    """A model whose numbers are on the device and whose functions are compiled.

    Models of one structure (the same functions, other numbers) share compiled functions.
    """

    def __init__(self, model: Model) -> None:
        # The averages do not depend on the spectrum: models that differ in it share compiled code.
        spectrum = attrgetter("spectrum")
        white = model if spectrum(model) is None else eqx.tree_at(spectrum, model, None)
        arrays, static = eqx.partition(white, eqx.is_array_like)
        self.model = model
        self.arrays = jax.device_put(arrays)
        leaves, shape = jax.tree.flatten(static)
        sizes = tuple(np.shape(leaf) for leaf in jax.tree.leaves(arrays))
        self.structure: Structure = (shape, sizes, tuple(Identity(leaf) for leaf in leaves))
        flips = [s for s, u in sign_flips(model) if np.all(u < 0)]
        self._teacher_is_even = any(np.all(s > 0) for s in flips)
        self._loss_is_even = any(np.all(s < 0) for s in flips)

    @cached_property
    def averages(self) -> CompiledAverages:
        """Compiled functions for the averages."""
        return _compile_averages(self.structure)

    @cached_property
    def compiled_responses(self) -> CompiledOnce:
        """Compiled function for the responses."""
        return _compile_responses(self.structure)

    @cached_property
    def directions(self) -> Overlaps:
        """Directions of the derivatives: the coordinates of the overlaps, without those of V."""
        return jax.device_put(Coordinates.of(self.model).directions)

    def mirror(self, overlaps: Any) -> Mirror | None:
        """The change of signs under which the averages at given overlaps are the same."""
        if self._teacher_is_even and not np.any(overlaps.theta):
            return Mirror.TEACHER
        if self._loss_is_even and not np.any(overlaps.m):
            return Mirror.BOTH
        return None

    def blocks(
        self, overlaps: Any, log2_points: int, seed: int
    ) -> tuple[Float[Array, "dims points"], ...]:
        """The Gaussian points of the averages at given overlaps."""
        model = self.model
        student, teacher = model.length * model.student_rank, model.length * model.teacher_rank
        halved = self.mirror(overlaps) is not None
        return device_blocks(log2_points, student, teacher, seed, halved, model.normals)

    def expectations(
        self,
        overlaps: Any,
        log2_points: int,
        seed: int,
        prox_states: ProxStates = (),
        call: int = 0,
    ) -> Expectations:
        """Averages of the force of the proximal map.

        Parameters
        ----------
        prox_states : tuple
            State of the proximal map after an earlier call on the same points, or on the first of
            them.
        call : int
            Number of earlier calls on these points; chooses the probe of the proximal map.
        """
        before_evaluation()
        flat, blocks = _flatten(overlaps), self.blocks(overlaps, log2_points, seed)
        compiled, probe = self.averages, np.int32(call)

        def average_block(index: int) -> tuple[np.ndarray, Any]:
            block = blocks[index]
            if index < len(prox_states):
                rows, state = compiled.step(self.arrays, flat, block, prox_states[index], probe)
            else:
                rows, state = self._first_step(flat, block, compile_ahead=index == 0)
            return np.asarray(rows), state

        results = map_blocks(average_block, len(blocks))
        rows = np.mean([rows for rows, _ in results], axis=0)
        mirror = self.mirror(overlaps)
        return Expectations(
            per_scramble=without_odd(self.unflatten(rows), mirror),
            mean=without_odd(self.unflatten(np.mean(rows, axis=0)), mirror),
            prox_states=tuple(state for _, state in results),
        )

    def _first_step(
        self, flat: Float[np.ndarray, " n"], block: Array, *, compile_ahead: bool
    ) -> tuple[Array, Any]:
        """Averages of a block without a state, and its state.

        Second minima that turn up later move the map from one evaluation to the next, which Newton
        steps take for a change along the step. Where there may be many, all points are searched.
        """
        state = self.averages.initial(self.arrays, flat, block)
        if compile_ahead:
            self._compile_ahead(flat, block, state)
        rows, state = self.averages.step(self.arrays, flat, block, state, np.int32(0))
        if np.mean(np.asarray(getattr(state, "nonconvex", 0.0))) > MANY_NONCONVEX:
            rows, state = self.averages.step(self.arrays, flat, block, state, SEARCH_ALL)
        return rows, state

    def unflatten(self, rows: Float[np.ndarray, "*scrambles n"]) -> Any:
        """Averages from their values in one array."""
        model = self.model
        length, r, t = model.length, model.student_rank, model.teacher_rank
        shapes = [(model.directions, r), (length, r, r), (length, r, t), (length, r, r), (), (), ()]
        return Averages(*split_columns(rows, shapes))

    def responses(
        self, overlaps: Overlaps, log2_points: int, seed: int, prox_states: ProxStates
    ) -> Responses:
        """Linear response of the proximal map at the minimizers of an earlier call."""
        before_evaluation()
        flat, blocks = _flatten(overlaps), self.blocks(overlaps, log2_points, seed)
        respond = self.compiled_responses

        def respond_block(index: int) -> np.ndarray:
            state = prox_states[index]
            return np.asarray(respond(self.arrays, flat, blocks[index], state, self.directions))

        rows = np.mean(map_blocks(respond_block, len(blocks)), axis=0)
        model, count = self.model, len(self.directions.m)
        length, square = model.length, model.student_rank**2
        V = shapes_of(model)[2]
        slopes = [(count, *shape) for shape in shapes_of(model)]
        shapes = [V, (length, length, square, square), *slopes]
        jacobian, squared, *hats = split_columns(rows, shapes)
        return self._without_odd_slopes(
            Responses(jacobian, squared, Conjugates(*hats)), self.mirror(overlaps)
        )

    def _compile_ahead(self, *args: Any) -> None:
        """Compile the responses, which are needed at the end, beside the averages."""
        respond = self.compiled_responses
        if respond.untouched and jax.default_backend() == "cpu":
            respond.prepare(self.arrays, *args, self.directions)

    def _without_odd_slopes(self, responses: Responses, mirror: Mirror | None) -> Responses:
        """Set to zero the slopes that the mirror symmetry forbids.

        Odd averages have slopes along odd overlaps only, and even ones along even overlaps.
        """
        if mirror is None:
            return responses
        odd = {Mirror.BOTH: ("m", "mhat"), Mirror.TEACHER: ("theta", "thetahat")}
        odd_overlap, odd_average = odd[mirror]
        directions = np.asarray(getattr(self.directions, odd_overlap))
        is_odd = np.any(directions.reshape(len(directions), -1) != 0, axis=1)
        slopes = {}
        for name, part in responses.slopes._asdict().items():
            allowed = is_odd == (name == odd_average)
            slopes[name] = part * allowed.reshape(-1, *[1] * (part.ndim - 2))
        return responses._replace(slopes=responses.slopes._replace(**slopes))


#: The evaluator of a model, made once.
evaluator_of = memoize(32)(Evaluator)


def without_odd(averages: Any, mirror: Mirror | None) -> Any:
    """Set to zero the averages that are odd under the mirror."""
    match mirror:
        case Mirror.BOTH:
            return averages._replace(g=np.zeros_like(averages.g))
        case Mirror.TEACHER:
            return averages._replace(gy=np.zeros_like(averages.gy))
    return averages


#: Key of the models that share compiled functions.
Structure = tuple[Any, Any, tuple[Identity, ...]]


class CompiledAverages(NamedTuple):
    """Compiled functions for one kind of averages.

    Attributes
    ----------
    initial : ``(arrays, flat overlaps, points) -> state`` of the proximal map
    step : ``(arrays, flat overlaps, points, state, call) -> averages, state``
    """

    initial: CompiledOnce
    step: CompiledOnce


def compile_averages(
    structure: Structure, initial: Callable[..., Any], step: Callable[..., Any]
) -> CompiledAverages:
    """Compile functions of ``(model, flat overlaps, points, ...)`` for models of one structure."""

    def step_in_columns(*args: Any) -> tuple[Array, Any]:
        averages, state = step(*args)
        return join_columns(averages), state

    return CompiledAverages(
        initial=CompiledOnce(_on_arrays(structure, initial)),
        step=CompiledOnce(_on_arrays(structure, step_in_columns)),
    )


@lru_cache(maxsize=64)
def _compile_averages(structure: Structure) -> CompiledAverages:
    def initial(model: Model, flat: Array, points: Array) -> ProxState:
        return initial_prox_state(model, _unflatten(model, flat), points)

    def step(
        model: Model, flat: Array, points: Array, state: ProxState, call: Array
    ) -> tuple[Averages, ProxState]:
        return force_averages(model, _unflatten(model, flat), points, state, call)

    return compile_averages(structure, initial, step)


@lru_cache(maxsize=64)
def _compile_responses(structure: Structure) -> CompiledOnce:
    def respond(
        model: Model, flat: Array, points: Array, state: ProxState, directions: Overlaps
    ) -> Array:
        responses = mean_responses(model, _unflatten(model, flat), points, state, directions)
        return join_columns(jax.tree.leaves(responses))

    return CompiledOnce(_on_arrays(structure, respond))


def _on_arrays(structure: Structure, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a model as a function of the model's arrays."""
    static = jax.tree.unflatten(structure[0], [leaf.value for leaf in structure[2]])
    return lambda arrays, *args: function(eqx.combine(arrays, static), *args)


@lru_cache(maxsize=12)
def device_blocks(*key: int) -> tuple[Float[Array, "dims points"], ...]:
    """The points of `gaussian_blocks` on the device, in blocks, points on the last axis."""
    blocks = gaussian_blocks(*key)
    flat = blocks.reshape(len(blocks), -1, blocks.shape[-1]).swapaxes(1, 2)
    return tuple(jnp.asarray(np.ascontiguousarray(block)) for block in flat)


def _flatten(overlaps: Any) -> Float[np.ndarray, " n"]:
    # One small array instead of four: to pass an array to a compiled call has a fixed cost.
    return np.concatenate([np.ravel(part) for part in overlaps])


def _unflatten(model: Model, flat: Float[Array, " n"]) -> Overlaps:
    return Overlaps(*split_columns(flat, shapes_of(model)))


def join_columns(parts: Iterable[Array]) -> Float[Array, "scrambles n"]:
    """Averages side by side in one array: to fetch an array has a fixed cost."""
    return jnp.concatenate([part.reshape(N_SCRAMBLES, -1) for part in parts], axis=1)


def split_columns(values: Any, shapes: Sequence[tuple[int, ...]]) -> list[Any]:
    """Split the last axis into parts of the given shapes."""
    parts, begin = [], 0
    for shape in shapes:
        end = begin + math.prod(shape)
        parts.append(values[..., begin:end].reshape((*values.shape[:-1], *shape)))
        begin = end
    return parts
