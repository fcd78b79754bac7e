"""Averages over the fields: many queries in, one compiled call per block of points.

A solver asks a `Query` and is sent its answer: averages of the force (`AverageQuery`), or the
response of the proximal map (`ResponseQuery`). Queries of one kind about models of the same
structure are stacked and answered together with `jax.vmap`; what one of them does, NaN
included, stays in its own lane. Every number of points is worked through in blocks of one size, so
that a function compiled once serves all of them.
"""

from __future__ import annotations

import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, lru_cache
from operator import attrgetter
from typing import Any, Generic, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dotphase.model import Model
from dotphase.model.symmetry import sign_flips
from dotphase.numerics.proximal_map import Track
from dotphase.numerics.quadrature import SCRAMBLES, gaussian_blocks
from dotphase.runtime.jit_cache_limit import make_room
from dotphase.runtime.memoize import Same, remembered
from dotphase.runtime.threads import over_blocks, threads
from dotphase.theory.coordinates import Coordinates
from dotphase.theory.overlaps import Conjugates, Overlaps, shapes_of
from dotphase.theory.stability import Responses, mean_responses
from dotphase.theory.state_evolution import Averages, force_averages, fresh_track

A = TypeVar("A")

#: State of the proximal map, one for each block of points.
Tracks = tuple[Any, ...]


class Evaluator:
    """A model ready to be evaluated: its numbers on the device, its functions compiled.

    Models of the same structure (the same functions, other numbers) share what is compiled.
    """

    def __init__(self, model: Model) -> None:
        # The averages do not see the spectrum: models that differ in it share what is compiled.
        spectrum = attrgetter("spectrum")
        white = model if spectrum(model) is None else eqx.tree_at(spectrum, model, None)
        arrays, static = eqx.partition(white, eqx.is_array_like)
        self.model = model
        self.arrays = jax.device_put(arrays)
        leaves, shape = jax.tree.flatten(static)
        sizes = tuple(np.shape(leaf) for leaf in jax.tree.leaves(arrays))
        self.structure = (shape, sizes, tuple(Same(leaf) for leaf in leaves))
        self.compiled = _compile(self.structure)
        turned = [s for s, u in sign_flips(model) if np.all(u < 0)]
        self.even_teacher = any(np.all(s > 0) for s in turned)
        self.even = any(np.all(s < 0) for s in turned)

    @cached_property
    def directions(self) -> Overlaps:
        """Along which slopes are taken: the coordinates of the overlaps, but for V."""
        return jax.device_put(Coordinates.of(self.model).directions)

    def mirror(self, overlaps: Overlaps) -> Mirror | None:
        """The change of signs under which the averages at given overlaps are the same."""
        if self.even_teacher and not np.any(overlaps.theta):
            return Mirror.TEACHER
        if self.even and not np.any(overlaps.m):
            return Mirror.BOTH
        return None


#: The evaluator of a model, made once.
evaluator_of = remembered(32)(Evaluator)


class Mirror(Enum):
    """Changes of signs of all fields of a kind that leave the proximal problem what it was.

    Where the loss does not see the signs of X and h* together, and m = 0, turning all fields
    around turns X and g around: E[g] = 0. Where T does not see the sign of h* and theta = 0,
    turning those of the teacher around changes nothing: E[g y^T] = 0. Points then come in pairs of
    which one is enough, and what is odd is zero.
    """

    BOTH = "xi and y"
    TEACHER = "y"


class Stepping(NamedTuple):
    """What answers a query for averages: a fresh state, and averages with the next state."""

    start: Callable[..., Any]
    step: Callable[..., tuple[Array, Any]]
    start_lanes: Callable[..., Any]
    step_lanes: Callable[..., tuple[Array, Any]]


class Compiled(NamedTuple):
    """Functions for all models of one structure, for one and for many lanes."""

    averages: Stepping
    respond: _CompiledOnce
    respond_lanes: _CompiledOnce


#: What models must share to share what is compiled.
Structure = tuple[Any, Any, tuple[Same, ...]]


@lru_cache(maxsize=64)
def _compile(structure: Structure) -> Compiled:
    """Jitted functions for all models of one structure."""

    def respond(
        model: Model, flat: Array, points: Array, track: Track, directions: Overlaps
    ) -> Array:
        found = mean_responses(model, _unflat(model, flat), points, track, directions)
        return in_one_array(jax.tree.leaves(found))

    def start(model: Model, flat: Array, points: Array) -> Track:
        return fresh_track(model, _unflat(model, flat), points)

    def step(
        model: Model, flat: Array, points: Array, track: Track, call: Array
    ) -> tuple[Averages, Track]:
        return force_averages(model, _unflat(model, flat), points, track, call)

    whole = _with_arrays(structure, respond)
    return Compiled(
        averages=compile_stepping(structure, start, step),
        respond=_CompiledOnce(whole),
        respond_lanes=_CompiledOnce(jax.vmap(whole)),
    )


def compile_stepping(
    structure: Structure, start: Callable[..., Any], step: Callable[..., Any]
) -> Stepping:
    """Jitted functions that answer one kind of query for averages.

    Parameters
    ----------
    start : callable
        ``(model, flat overlaps, points) -> state``.
    step : callable
        ``(model, flat overlaps, points, state, call) -> averages, state``.
    """

    def stepped(*args: Any) -> tuple[Array, Any]:
        averages, state = step(*args)
        return in_one_array(averages), state

    begin, advance = _with_arrays(structure, start), _with_arrays(structure, stepped)
    return Stepping(
        start=_CompiledOnce(begin),
        step=_CompiledOnce(advance),
        start_lanes=_CompiledOnce(jax.vmap(begin)),
        step_lanes=_CompiledOnce(jax.vmap(advance, in_axes=(0, 0, 0, 0, None))),
    )


def in_one_array(parts: Iterable[Array]) -> Float[Array, "scrambles n"]:
    """Averages side by side: fetching an array has a fixed cost."""
    return jnp.concatenate([part.reshape(SCRAMBLES, -1) for part in parts], axis=1)


def _with_arrays(structure: Structure, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a model as one of the model's numbers."""
    static = jax.tree.unflatten(structure[0], [leaf.value for leaf in structure[2]])
    return lambda arrays, *rest: function(eqx.combine(arrays, static), *rest)


class _CompiledOnce:
    """A jitted function whose first call makes the other threads wait instead of compiling too.

    Attributes
    ----------
    untouched : whether nobody has called it yet, or begun to prepare it
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = jax.jit(function)
        self._lock = threading.Lock()
        self._ready = False
        self.untouched = True

    def prepare(self, *args: Any) -> None:
        """Compile it for such arguments beside what goes on."""
        self.untouched = False

        def work() -> None:
            # Whoever asked keeps compiled code for as long as he runs, and no longer.
            with jax.enable_x64(True):
                self(*args)

        threads().submit(work)

    def __call__(self, *args: Any) -> Any:
        if self._ready:
            return self._function(*args)
        self.untouched = False
        make_room()
        with self._lock:
            result = self._function(*args)
            self._ready = True
        return result


@dataclass(frozen=True)
class Answer:
    """Averages, with one row per scramble and over all of them, and the state of the proximal
    map."""

    averages: Any
    mean: Any
    tracks: Tracks


@dataclass(frozen=True)
class Query(ABC, Generic[A]):
    """What a solver wants to know of a model at given overlaps, on given points."""

    evaluator: Evaluator
    overlaps: Any
    log2_points: int
    seed: int

    @property
    def group(self) -> Any:
        """What two queries must share to be answered together."""
        return type(self), self.evaluator.structure, self.log2_points, self.seed, self.halved

    @property
    def inside(self) -> int:
        """How many proximal problems there are for each point."""
        return 1

    @property
    def mirror(self) -> Mirror | None:
        """The symmetry by which half of the points are left out, if any."""
        return self.evaluator.mirror(self.overlaps)

    @property
    def halved(self) -> bool:
        """Whether every point stands for its mirror image too."""
        return self.mirror is not None

    @property
    def blocks(self) -> tuple[Float[Array, "dims points"], ...]:
        """The Gaussian points that it averages over."""
        model = self.evaluator.model
        student, teacher = model.length * model.student_rank, model.length * model.teacher_rank
        which = (self.log2_points, student, teacher, self.seed, self.halved, model.normals)
        return device_blocks(*which)

    @abstractmethod
    def alone(self) -> A:
        """The answer."""

    @staticmethod
    @abstractmethod
    def together(queries: Sequence[Any], width: int) -> list[Any]:
        """The answers to several queries of one group, so many blocks in a vmapped call."""


@dataclass(frozen=True)
class AverageQuery(Query[Answer]):
    """Averages of the force of the proximal map.

    Attributes
    ----------
    tracks : state of the proximal map from the last answer on the same points, or on the first
        of them, if any
    call : how many queries went before on these points; chooses the probe of the prox
    """

    tracks: Tracks = ()
    call: int = 0

    @property
    def compiled(self) -> Stepping:
        """The functions that answer it."""
        return self.evaluator.compiled.averages

    def look_ahead(self, *given: Any) -> None:
        """Have compiled what is asked at the end, while the averages are."""
        respond = self.evaluator.compiled.respond
        if respond.untouched and self.inside == 1 and jax.default_backend() == "cpu":
            respond.prepare(*given, self.evaluator.directions)

    def answer(self, rows: Float[np.ndarray, "scrambles n"], tracks: Sequence[Any]) -> Answer:
        """From what the scrambles give, in one array."""
        return Answer(self.averages(rows), self.averages(np.mean(rows, axis=0)), tuple(tracks))

    def averages(self, rows: Float[np.ndarray, "*scrambles n"]) -> Any:
        """The columns of one array back in their places."""
        model = self.evaluator.model
        length, r, t = model.length, model.student_rank, model.teacher_rank
        shapes = [(model.directions, r), (length, r, r), (length, r, t), (length, r, r), (), (), ()]
        return self.without_odd(Averages(*cut(rows, shapes)))

    def without_odd(self, averages: Any) -> Any:
        """The averages with those at zero that are odd in what the points leave out."""
        match self.mirror:
            case Mirror.BOTH:
                return averages._replace(g=np.zeros_like(averages.g))
            case Mirror.TEACHER:
                return averages._replace(gy=np.zeros_like(averages.gy))
        return averages

    def alone(self) -> Answer:
        flat, blocks = _flat(self.overlaps), self.blocks
        arrays, run = self.evaluator.arrays, self.compiled
        call = np.int32(self.call)

        def work(index: int) -> tuple[np.ndarray, Track]:
            block = blocks[index]
            known = index < len(self.tracks)
            track = self.tracks[index] if known else run.start(arrays, flat, block)
            if index == 0:
                self.look_ahead(arrays, flat, block, track)
            rows, track = run.step(arrays, flat, block, track, call)
            return np.asarray(rows), track

        done = over_blocks(work, len(blocks))
        rows = np.mean([rows for rows, _ in done], axis=0)
        return self.answer(rows, [track for _, track in done])

    @staticmethod
    def together(queries: Sequence[AverageQuery], width: int) -> list[Answer]:
        run, call = queries[0].compiled, np.int32(queries[0].call)
        found = []
        for some, given in _calls(queries, width):
            known = [lane.block < len(lane.query.tracks) for lane in some]
            fresh = [] if all(known) else _unstack(run.start_lanes(*given))
            tracks = _stack([
                lane.query.tracks[lane.block] if old else fresh[place]
                for place, (lane, old) in enumerate(zip(some, known, strict=True))
            ])  # fmt: skip
            averages, tracks = run.step_lanes(*given, tracks, call)
            found.append((averages, _unstack(tracks)))
        # Only now, so that the device has its work before anything is waited for.
        rows = np.concatenate(jax.device_get([part[0] for part in found]))
        left = [track for part in found for track in part[1]]
        return [
            query.answer(np.mean(rows[own], axis=0), left[own]) for query, own in _owned(queries)
        ]


@dataclass(frozen=True)
class ResponseQuery(Query[Responses]):
    """Linear response of the proximal map at the points where an answer has left it."""

    tracks: Tracks

    @property
    def group(self) -> Any:
        return *super().group, len(self.evaluator.directions.m)

    def responses(self, rows: Float[np.ndarray, "scrambles n"]) -> Responses:
        """The columns of one array back in their places."""
        model, along = self.evaluator.model, len(self.evaluator.directions.m)
        length, square = model.length, model.student_rank**2
        q, m, V, theta = shapes_of(model)
        slopes = [(along, *shape) for shape in (q, m, V, theta)]
        jacobian, squared, *hats = cut(rows, [V, (length, length, square, square), *slopes])
        return _even(self, Responses(jacobian, squared, Conjugates(*hats)))

    def alone(self) -> Responses:
        flat, blocks = _flat(self.overlaps), self.blocks
        arrays, run, along = (
            self.evaluator.arrays,
            self.evaluator.compiled,
            self.evaluator.directions,
        )

        def work(index: int) -> np.ndarray:
            return np.asarray(run.respond(arrays, flat, blocks[index], self.tracks[index], along))

        return self.responses(np.mean(over_blocks(work, len(blocks)), axis=0))

    @staticmethod
    def together(queries: Sequence[ResponseQuery], width: int) -> list[Responses]:
        run = queries[0].evaluator.compiled
        found = []
        for some, given in _calls(queries, width):
            tracks = _stack([lane.query.tracks[lane.block] for lane in some])
            along = _stack([lane.query.evaluator.directions for lane in some])
            found.append(run.respond_lanes(*given, tracks, along))
        rows = np.concatenate(jax.device_get(found))
        return [query.responses(np.mean(rows[own], axis=0)) for query, own in _owned(queries)]


class Lane(NamedTuple):
    """One block of points of a query."""

    query: Any
    block: int


def _calls(
    queries: Sequence[Query[Any]], width: int
) -> Iterator[tuple[list[Lane], tuple[Any, Any, Array]]]:
    """All blocks of all queries, so many at once: the numbers of their models, overlaps, points.

    The last call is filled up, so that nothing is compiled again.
    """
    blocks = queries[0].blocks
    lanes = [Lane(query, index) for query in queries for index in range(len(blocks))]
    for begin in range(0, len(lanes), width):
        some = lanes[begin : begin + width]
        some = some + [some[0]] * (width - len(some))
        arrays = _stack([lane.query.evaluator.arrays for lane in some])
        flat = np.stack([_flat(lane.query.overlaps) for lane in some])
        yield some, (arrays, flat, _stack([blocks[lane.block] for lane in some]))


def _owned(queries: Sequence[Any]) -> Iterator[tuple[Any, slice]]:
    """Queries, and which of the lanes in the order of `_calls` are theirs."""
    each = len(queries[0].blocks)
    return ((query, slice(k * each, (k + 1) * each)) for k, query in enumerate(queries))


@lru_cache(maxsize=12)
def device_blocks(*which: int) -> tuple[Float[Array, "dims points"], ...]:
    """The points of `gaussian_blocks` on the device, in blocks, points on the last axis."""
    blocks = gaussian_blocks(*which)
    flat = blocks.reshape(len(blocks), -1, blocks.shape[-1]).swapaxes(1, 2)
    return tuple(jnp.asarray(np.ascontiguousarray(block)) for block in flat)


def _flat(overlaps: Any) -> Float[np.ndarray, " n"]:
    # One small array instead of four: handing an array to a compiled call has a fixed cost.
    return np.concatenate([np.ravel(part) for part in overlaps])


def _unflat(model: Model, flat: Float[Array, " n"]) -> Overlaps:
    return Overlaps(*cut(flat, shapes_of(model)))


def cut(values: Any, shapes: Sequence[tuple[int, ...]]) -> list[Any]:
    """Parts of the given shapes, one after the other, of the last axis."""
    parts, begin = [], 0
    for shape in shapes:
        end = begin + math.prod(shape)
        parts.append(values[..., begin:end].reshape((*values.shape[:-1], *shape)))
        begin = end
    return parts


def _even(query: ResponseQuery, responses: Responses) -> Responses:
    """Without the slopes of what is odd under the mirror along what is even, and the reverse."""
    odd = {Mirror.BOTH: ("m", "mhat"), Mirror.TEACHER: ("theta", "thetahat")}
    if query.mirror is None:
        return responses
    turned, output = odd[query.mirror]
    along = np.asarray(getattr(query.evaluator.directions, turned))
    turns = np.any(along.reshape(len(along), -1) != 0, axis=1)
    kept = {}
    for name, part in responses.slopes._asdict().items():
        same = turns == (name == output)
        kept[name] = part * same.reshape(-1, *[1] * (part.ndim - 2))
    return responses._replace(slopes=responses.slopes._replace(**kept))


@jax.jit
def _stack(trees: Sequence[Any]) -> Any:
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)


@jax.jit
def _unstack(tree: Any) -> list[Any]:
    # In one call: every slice by itself would cost as much as all of them.
    count = len(jax.tree.leaves(tree)[0])
    return [jax.tree.map(lambda leaf, lane=lane: leaf[lane], tree) for lane in range(count)]
