"""Work of unknown length in lanes: a lane whose work has ended is given the next.

A compiled call works on many lanes at once and lasts as long as the slowest of them. What is
iterated until it converges is therefore advanced some steps at a time; between two such rounds
the lanes that have finished are read out and filled again, so that nobody waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Bool, Int

from dotphase.finite.batches import in_batches

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
    waiting, held, lanes = iter(items), dict[int, T](), None
    while True:
        free = [lane for lane in range(count) if lane not in held]
        for some, filled in in_batches(list(zip(free, waiting, strict=False)), part):
            places, begun = zip(*filled, strict=True)
            new = work.begin(begun)
            lanes = _take(new, np.zeros(count, int)) if lanes is None else lanes
            lanes = _put((new, np.asarray(places)), lanes)
            held.update(some)
        if not held:
            return
        lanes, finished = work.advance(lanes)
        stopped = np.asarray(finished)
        over = [lane for lane in held if stopped[lane]]
        if len(over) < len(held):
            over = over[: len(over) // part * part]
        for done, read in in_batches(over, part):
            found = work.finish(_take(lanes, np.asarray(read)))
            results = {name: np.asarray(value)[: len(done)] for name, value in found.items()}
            yield [held.pop(lane) for lane in done], results


@eqx.filter_jit
def _take(lanes: Any, places: Int[np.ndarray, " some"]) -> Any:
    return jax.tree.map(lambda leaf: leaf[places], lanes)


@eqx.filter_jit(donate="all-except-first")
def _put(what: tuple[Any, Int[np.ndarray, " some"]], lanes: Any) -> Any:
    new, places = what
    return jax.tree.map(lambda leaf, part: leaf.at[places].set(part), lanes, new)
