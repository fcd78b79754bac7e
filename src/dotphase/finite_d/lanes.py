"""Work of unknown length in lanes: a lane whose work has ended is given the next.

A compiled call works on many lanes at once and lasts as long as the slowest of them. What is
iterated until it converges is therefore advanced some steps at a time; between two such rounds
the lanes that have finished are read out and filled again, so that nobody waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from dotphase.finite_d.batches import in_batches
from dotphase.runtime import interrupt

T = TypeVar("T")

#: Lanes are read out and filled when this share of them, one over PARTS, has finished.
PARTS = 8


class Work(NamedTuple, Generic[T]):
    """What is done in lanes, which are any arrays with an axis over the lanes in front.

    Attributes
    ----------
    begin : items -> the lanes that they begin in
    advance : lanes -> the lanes after some steps, and which of them have finished
    finish : lanes -> results by name
    """

    begin: Callable[[Sequence[T]], Any]
    advance: Callable[[Any], tuple[Any, Bool[Array, " lanes"]]]
    finish: Callable[[Any], dict[str, Array]]


def in_lanes(
    work: Work[T], items: Sequence[T], count: int
) -> Iterator[tuple[list[T], dict[str, np.ndarray]]]:
    """Do the work of all items in `count` lanes; yields items and their results as they end.

    Calls have one of two numbers of lanes, all of them or a part: nothing is compiled again.
    """
    part = -(-count // PARTS)
    count -= count % part
    waiting = ((some, work.begin(filled)) for some, filled in in_batches(items, part))
    free, held, lanes = list(range(count)), dict[int, T](), None
    ended: list[tuple[list[T], dict[str, Array]]] = []
    ahead = next(waiting, None)
    compiled = None if ahead is None else _aside(work.finish, ahead[1])
    while held or ahead:
        interrupt.check()
        while ahead and free:
            some, new = ahead
            places = np.asarray(free[:part])
            lanes = _take(new, np.zeros(count, int)) if lanes is None else lanes
            lanes = _put((new, places), lanes)
            held.update(zip(places.tolist(), some, strict=False))
            free = free[part:]
            ahead = next(waiting, None) if free else None
        lanes, finished = work.advance(lanes)
        # While the lanes are busy: the next to begin, and results of those that have ended.
        ahead = ahead or next(waiting, None)
        yield from _read(ended)
        stopped = np.asarray(finished)
        over = [lane for lane in held if stopped[lane]]
        if len(over) < len(held):
            over = over[: len(over) // part * part]
        ended = []
        if over and compiled is not None:
            compiled.result()
        for some_lanes, filled in in_batches(over, part):
            found = work.finish(_take(lanes, np.asarray(filled)))
            ended.append(([held.pop(lane) for lane in some_lanes], found))
            free += filled
    yield from _read(ended)


def _aside(function: Callable[[Any], Any], argument: Any) -> Future[Any]:
    """Call a function in a thread: it is compiled while others are."""
    double = jnp.result_type(float) == np.float64

    def call() -> None:
        with jax.enable_x64(double):
            function(argument)

    thread = ThreadPoolExecutor(1)
    called = thread.submit(call)
    thread.shutdown(wait=False)
    return called


def _read(
    ended: list[tuple[list[T], dict[str, Array]]],
) -> Iterator[tuple[list[T], dict[str, np.ndarray]]]:
    for items, found in ended:
        results: dict[str, np.ndarray] = jax.device_get(found)
        yield items, {name: value[: len(items)] for name, value in results.items()}


@eqx.filter_jit
def _take(lanes: Any, places: Int[np.ndarray, " some"]) -> Any:
    return jax.tree.map(lambda leaf: leaf[places], lanes)


@eqx.filter_jit(donate="all-except-first")
def _put(what: tuple[Any, Int[np.ndarray, " some"]], lanes: Any) -> Any:
    new, places = what
    return jax.tree.map(lambda leaf, part: leaf.at[places].set(part), lanes, new)
