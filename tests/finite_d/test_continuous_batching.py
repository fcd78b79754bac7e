"""Continuous batching: every item is iterated once, and no slot waits for the slowest."""

import jax.numpy as jnp
import numpy as np
import pytest

from dotphase.finite_d import continuous_batching
from dotphase.finite_d.continuous_batching import N_GROUPS, SlotWork, run_in_slots

ROUND = 4


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    """Skip the call that only compiles: `Counting` would count it."""
    monkeypatch.setattr(continuous_batching, "_call_in_thread", lambda function, argument: None)


class Counting:
    """Count up to each item, some steps at a time, and record the calls."""

    def __init__(self):
        self.begun, self.rounds, self.read = [], 0, []

    def begin(self, items):
        self.begun.append(list(items))
        goal = jnp.asarray(items)
        return {"goal": goal, "count": jnp.zeros_like(goal)}

    def advance(self, state):
        self.rounds += 1
        count = jnp.minimum(state["count"] + ROUND, state["goal"])
        return {**state, "count": count}, count == state["goal"]

    def finish(self, state):
        self.read.append(state["goal"].shape[0])
        return {"counted": state["count"]}

    def work(self):
        return SlotWork(self.begin, self.advance, self.finish)


@pytest.mark.parametrize("count", [1, 3, 16])
@pytest.mark.parametrize("length", [0, 16, 37])
def test_every_item_is_done_once(count, length):
    items = np.random.default_rng(0).integers(1, 60, length).tolist()
    counting, n_slots = Counting(), min(count, max(length, 1))
    received, results = [], []

    def receive(batch, result):
        assert len(batch) == len(result["counted"])
        received.extend(batch)
        results.extend(result["counted"].tolist())

    run_in_slots(counting.work(), items, n_slots, receive)
    assert sorted(received) == sorted(items)
    # The result belongs to the item, whichever slot it was in.
    assert received == results
    # All calls have the one size that is compiled.
    size = -(-n_slots // N_GROUPS)
    assert {len(batch) for batch in counting.begun} | set(counting.read) <= {size}


def test_finished_slots_are_filled_while_others_go_on():
    """Two of 64 items take long: batches of 16 would wait for each of them."""
    items = [400 if number in (0, 40) else 8 for number in range(64)]
    counting, received = Counting(), []
    run_in_slots(counting.work(), items, 16, lambda batch, _: received.extend(batch))
    # The first long item needs 100 rounds; all others run at the same time or soon after.
    assert counting.rounds < 112
    waiting = sum(max(items[first : first + 16]) // ROUND for first in range(0, 64, 16))
    assert waiting > 200
    assert received[-1] == 400 and received.index(400) >= 60


def test_results_arrive_as_items_finish():
    counting, received = Counting(), []
    run_in_slots(
        counting.work(),
        [4, 40, 4, 4],
        2,
        lambda batch, _: received.append((*batch, counting.rounds)),
    )
    # The first result is read while the next round runs.
    assert received[0] == (4, 2)
    assert [item for item, _ in received] == [4, 4, 4, 40]
