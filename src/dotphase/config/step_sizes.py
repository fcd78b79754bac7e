"""What the steps of a descent are: their sizes, for all or for each, momentum and batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from dotphase.config import validation
from dotphase.errors import InvalidInput

#: What `lr` may be.
StepSize = float | Sequence[float] | Callable[[int], float]


def step_sizes(lr: Any, steps: int) -> Float[np.ndarray, " steps"]:
    """The size of every step, all positive."""
    allowed = f"must be a number > 0, {steps} of them, or a function of the step that gives them"
    try:
        values = [lr(step) for step in range(steps)] if callable(lr) else lr
        sizes = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput("lr", lr, allowed) from None
    if isinstance(lr, bool) or sizes.shape not in ((), (steps,)):
        shape = " x ".join(map(str, sizes.shape))
        raise InvalidInput("lr", lr, allowed + (f", and these are {shape}" if shape else ""))
    wrong = np.flatnonzero(~(np.isfinite(sizes) & (sizes > 0)))
    if wrong.size:
        first = int(wrong[0])
        where = f", and step {first} has {sizes[first]:g}" if sizes.ndim else ""
        raise InvalidInput("lr", lr, allowed + where)
    return np.broadcast_to(sizes, (steps,))


def check_momentum(value: object) -> float:
    """A valid momentum."""
    momentum = validation.number("momentum", value, at_least=0)
    if momentum >= 1:
        raise InvalidInput("momentum", value, "must be >= 0 and < 1")
    return momentum


def check_fraction(value: object) -> float:
    """A valid share of the sentences that a step sees."""
    return validation.number("batch_fraction", value, above=0, at_most=1)


def constant(sizes: Float[np.ndarray, " steps"]) -> bool:
    """Whether all steps have one size."""
    return bool(np.ptp(sizes) == 0)
