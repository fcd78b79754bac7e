"""Work in lanes: everything is done once, and nobody waits for the slowest."""

import jax.numpy as jnp
import numpy as np
import pytest

from dotphase.finite_d import lanes
from dotphase.finite_d.lanes import PARTS, Work, in_lanes

ROUND = 4


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    """What is called to be compiled would be noted with the rest."""
    monkeypatch.setattr(lanes, "_aside", lambda function, argument: None)


class Counting:
    """Counts to the number of an item, some steps at a time, and notes how it is called."""

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
        return Work(self.begin, self.advance, self.finish)


@pytest.mark.parametrize("count", [1, 3, 16])
@pytest.mark.parametrize("length", [0, 16, 37])
def test_every_item_is_done_once(count, length):
    items = np.random.default_rng(0).integers(1, 60, length).tolist()
    counting, found, results = Counting(), [], []
    for some, result in in_lanes(counting.work(), items, min(count, max(length, 1))):
        assert len(some) == len(result["counted"])
        found += some
        results += result["counted"].tolist()
    assert sorted(found) == sorted(items)
    # The result is that of the item, whatever lane it was in and whoever was there before.
    assert found == results
    # Calls come in one size, for which they are compiled.
    part = -(-min(count, max(length, 1)) // PARTS)
    assert {len(some) for some in counting.begun} | set(counting.read) <= {part}


def test_lanes_that_have_ended_are_filled_while_others_go_on():
    """Two of 64 items take long: batches of 16 would wait for each of them."""
    items = [400 if number in (0, 40) else 8 for number in range(64)]
    counting = Counting()
    ended = [item for some, _ in in_lanes(counting.work(), items, 16) for item in some]
    # The first long item needs 100 rounds; all the rest is done beside it or soon after.
    assert counting.rounds < 112
    waiting = sum(max(items[first : first + 16]) // ROUND for first in range(0, 64, 16))
    assert waiting > 200
    assert ended[-1] == 400 and ended.index(400) >= 60


def test_results_come_as_items_end():
    counting = Counting()
    arriving = in_lanes(counting.work(), [4, 40, 4, 4], 2)
    assert next(arriving)[0] == [4]
    # Read while the next round is under way.
    assert counting.rounds == 2
    assert [item for some, _ in arriving for item in some] == [4, 4, 40]
