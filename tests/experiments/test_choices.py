"""A start and an optimizer that a program adds are known wherever students are trained."""

from __future__ import annotations

import optax
import pytest

import dotphase as dp
from dotphase.finite_d.initialization import Initializer
from dotphase.finite_d.initializers import INITIALIZERS
from dotphase.training.loop import Optimizer, first_order
from dotphase.training.optimizers import OPTIMIZERS

STEPS = 7


def half(key, teacher_weights, positions, columns, scale):
    return 0.5 * teacher_weights[:, :columns]


@pytest.fixture
def added():
    INITIALIZERS.register("half", Initializer(half))
    OPTIMIZERS.register("lion", Optimizer(first_order(optax.lion), steps=STEPS, lr=0.01))
    yield
    INITIALIZERS.unregister("half")
    OPTIMIZERS.unregister("lion")


def test_one_entry_serves_every_experiment(paper, added):
    assert INITIALIZERS.names()[-1] == "half" and OPTIMIZERS.names()[-1] == "lion"
    run = dp.train(paper, 2.0, 20, seeds=1, start="half", optimizer="lion", held_out=2).runs[0]
    cells = dp.grid(lambda omega: dp.positional_semantic(omega=omega), [2.0], [0.3], 20, seeds=1,
                    starts=["half"], optimizer="lion")  # fmt: skip
    map_of = dp.basins(paper, [2.0], [1.0], 20, seeds=1, start="half", optimizers=["lion"])
    assert run.iterations == STEPS
    assert cells["iterations"].values.ravel().tolist() == [STEPS]
    assert map_of["iterations"].values.ravel().tolist() == [STEPS]
    # Q*/2 is far from the minimum, and seven steps of .01 do not lead away from it.
    for alignment in (run.semantic_alignment, float(map_of["semantic_alignment"].squeeze())):
        assert alignment > 0.95
    with pytest.raises(dp.InvalidInput, match="already registered"):
        INITIALIZERS.register("half", Initializer(half))


def test_without_it_the_name_is_refused(paper):
    with pytest.raises(dp.InvalidInput, match="must be one of lbfgs, gd, momentum, adam, sgd"):
        dp.train(paper, 2.0, 20, optimizer="lion")
    with pytest.raises(dp.InvalidInput, match="must be one of semantic, positional, mixed, random"):
        dp.grid(lambda omega: paper, [2.0], [0.3], 20, starts=["half"])
