"""Continuous batching of iterations whose number of steps is not known in advance.

A compiled call advances many slots at once and lasts as long as the slowest of them. Iterations are
therefore advanced some steps at a time. Between calls the slots whose iteration has finished are
read and filled with new items, so that no slot waits for the slowest.
"""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from dotphase.finite_d.batches import split_batches
from dotphase.runtime import interrupt
from dotphase.runtime.precision import fixed_settings

T = TypeVar("T")

#: Slots are read and filled in groups: this is the number of groups.
N_GROUPS = 8


class SlotWork(NamedTuple, Generic[T]):
    """Functions of an iteration; slots are any arrays whose first axis runs over the slots."""

    begin: Callable[[Sequence[T]], Any]  #: items -> slots with their initial state
    #: slots -> (slots after some steps, which of them have finished)
    advance: Callable[[Any], tuple[Any, Bool[Array, " slots"]]]
    finish: Callable[[Any], dict[str, Array]]  #: slots -> results by name


def run_in_slots(
    work: SlotWork[T],
    items: Sequence[T],
    n_slots: int,
    receive: Callable[[list[T], dict[str, np.ndarray]], None],
) -> None:
    """Iterate all items in `n_slots` slots; `receive` gets items with their results as they finish.

    Calls take either all slots or one group of them, so that two sizes are compiled.
    """
    size = -(-n_slots // N_GROUPS)
    n_slots -= n_slots % size
    batches = deque(split_batches(items, size))

    def begin_next() -> tuple[Sequence[T], Any] | None:
        if not batches:
            return None
        batch, filled = batches.popleft()
        return batch, work.begin(filled)

    free, occupied, slots = list(range(n_slots)), dict[int, T](), None
    finished: list[tuple[list[T], dict[str, Array]]] = []
    upcoming = begin_next()
    compiled = None if upcoming is None else _call_in_thread(work.finish, upcoming[1])
    while occupied or upcoming:
        interrupt.check()
        while upcoming and free:
            batch, new = upcoming
            indices = np.asarray(free[:size])
            slots = _take(new, np.zeros(n_slots, int)) if slots is None else slots
            slots = _put((new, indices), slots)
            occupied.update(zip(indices.tolist(), batch, strict=False))
            free = free[size:]
            upcoming = begin_next() if free else None
        slots, is_finished = work.advance(slots)
        # While the slots are busy, prepare the next items and read the last results.
        upcoming = upcoming or begin_next()
        _report(finished, receive)
        stopped = np.asarray(is_finished)
        over = [slot for slot in occupied if stopped[slot]]
        if len(over) < len(occupied):
            over = over[: len(over) // size * size]
        finished = []
        if over and compiled is not None:
            compiled.result()
        for group, filled in split_batches(over, size):
            results = work.finish(_take(slots, np.asarray(filled)))
            finished.append(([occupied.pop(slot) for slot in group], results))
            free += filled
    _report(finished, receive)


def _call_in_thread(function: Callable[[Any], Any], argument: Any) -> Future[Any]:
    """Call a function in a thread, so that it is compiled while other functions are."""
    in_double_precision = jnp.result_type(float) == np.float64

    def call() -> None:
        with fixed_settings(in_double_precision):
            function(argument)

    thread = ThreadPoolExecutor(1)
    future = thread.submit(call)
    thread.shutdown(wait=False)
    return future


def _report(
    finished: list[tuple[list[T], dict[str, Array]]],
    receive: Callable[[list[T], dict[str, np.ndarray]], None],
) -> None:
    """Copy results from the device; drop those of the padding."""
    for items, on_device in finished:
        results: dict[str, np.ndarray] = jax.device_get(on_device)
        receive(items, {name: value[: len(items)] for name, value in results.items()})


@eqx.filter_jit
def _take(slots: Any, indices: Int[np.ndarray, " group"]) -> Any:
    return jax.tree.map(lambda leaf: leaf[indices], slots)


@eqx.filter_jit(donate="all-except-first")
def _put(new_at: tuple[Any, Int[np.ndarray, " group"]], slots: Any) -> Any:
    new, indices = new_at
    return jax.tree.map(lambda leaf, group: leaf.at[indices].set(group), slots, new)
