"""Sizes that cannot be are refused at once, in one line that names the right field."""

from __future__ import annotations

import jax.numpy as jnp
import pytest

import dotphase as dp
from dotphase.config import validation

HUGE = 10**9


def uniform(h):
    return jnp.full((2, 2), 0.5)


def _wide(paper: dp.Model) -> dp.Model:
    return paper.replace(teacher=uniform, teacher_rank=20_000)


def repr_short(value: object) -> str:
    """Names of the tests: thousands of digits are none."""
    return "long" if isinstance(value, int) and value > HUGE else repr(value)


@pytest.mark.parametrize(
    ("field", "ask"),
    [
        ("student_rank", lambda paper: dp.solve(dp.positional_semantic(student_rank=1500), 1.0)),
        ("student_rank", lambda paper: dp.positional_semantic(student_rank=HUGE)),
        ("length", lambda paper: dp.Model(abs, abs, length=HUGE)),
        (
            "d",
            lambda paper: dp.train(_wide(paper), 1.0, 20_000),
        ),
        ("d", lambda paper: dp.amp(paper, 1.0, HUGE)),
        ("d", lambda paper: dp.sample(paper, HUGE, HUGE, 0)),
        ("d", lambda paper: dp.basins(paper, [1.0], [1.0], HUGE)),
        ("seeds", lambda paper: dp.train(paper, 1.0, 100, seeds=HUGE)),
        ("seeds", lambda paper: dp.amp(paper, 1.0, 100, seeds=HUGE)),
        ("seeds", lambda paper: dp.basins(paper, [1.0], [1.0], 100, seeds=10**12)),
        ("seeds", lambda paper: dp.Study("theory", sweep={"alpha": [1.0]}, seeds=10**8)),
        ("steps", lambda paper: dp.dynamics(paper, 1.0, steps=10**6, lr=1.0)),
        ("steps", lambda paper: dp.dynamics(paper, 1.0, steps=10**12, lr=1.0)),
        ("samples", lambda paper: dp.histogram.draw(dp.histogram.Task(samples=10**12))),
        ("runs", lambda paper: dp.histogram.HistogramSettings().check_runs(HUGE)),
        ("seeds", lambda paper: dp.train(paper, 1.0, 100, seeds=10**30)),
        ("scale", lambda paper: dp.train(paper, 1.0, 100, start="random", scale=1e300)),
    ],
)
def test_sizes_that_cannot_be(paper, field, ask):
    with pytest.raises(dp.InvalidInput) as caught:
        ask(paper)
    assert caught.value.field == field, str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [10**30, 10**5000, float("inf"), "1", True, None], ids=repr_short)
def test_numbers_that_are_none(value):
    for check in (validation.number, validation.integer):
        with pytest.raises(dp.InvalidInput) as caught:
            check("n", value, at_least=0, **({"at_most": 1} if check is validation.number else {}))
        assert len(str(caught.value)) < 300
