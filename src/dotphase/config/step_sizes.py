"""Checks of the step sizes, momentum and batch fraction of a descent."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from dotphase.config import validation
from dotphase.errors import InvalidInput

#: Values that an argument `lr` accepts: one size, one per step, or a function of the step.
StepSize = float | Sequence[float] | Callable[[int], float]


def step_sizes(lr: Any, steps: int) -> Float[np.ndarray, " steps"]:
    """Return the size of every step, or raise `InvalidInput` unless all are positive."""
    allowed = f"must be a number > 0, {steps} of them, or a function of the step that gives them"
    try:
        values = [lr(step) for step in range(steps)] if callable(lr) else lr
        sizes = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput("lr", lr, allowed) from None
    if isinstance(lr, bool) or sizes.shape not in ((), (steps,)):
        shape = " x ".join(map(str, sizes.shape))
        raise InvalidInput("lr", lr, allowed + (f"; the shape is {shape}" if shape else ""))
    invalid = np.flatnonzero(~(np.isfinite(sizes) & (sizes > 0)))
    if invalid.size:
        first = int(invalid[0])
        detail = f"; step {first} has {sizes[first]:g}" if sizes.ndim else ""
        raise InvalidInput("lr", lr, allowed + detail)
    return np.broadcast_to(sizes, (steps,))


def check_momentum(value: object) -> float:
    """Return `value` if it is a momentum in [0, 1), or raise `InvalidInput`."""
    momentum = validation.number("momentum", value, at_least=0)
    if momentum >= 1:
        raise InvalidInput("momentum", value, "must be >= 0 and < 1")
    return momentum


def check_batch_fraction(value: object) -> float:
    """Return `value` if it is a fraction of the sentences in (0, 1], or raise `InvalidInput`."""
    return validation.number("batch_fraction", value, above=0, at_most=1)


def is_constant(sizes: Float[np.ndarray, " steps"]) -> bool:
    """Return True if all steps have the same size."""
    return bool(np.ptp(sizes) == 0)
