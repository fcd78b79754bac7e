"""Settings of one-pass stochastic gradient descent, and its learning-rate schedules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from dotphase.config import validation

#: Factors of the learning rate by name: functions of alpha and of its last value.
SCHEDULES: dict[str, Callable[[np.ndarray, float], np.ndarray]] = {
    "constant": lambda alpha, end: np.ones_like(alpha),
    "linear": lambda alpha, end: 1 - alpha / end,
    "cosine": lambda alpha, end: 0.5 * (1 + np.cos(np.pi * alpha / end)),
    "inverse": lambda alpha, end: 1 / (1 + alpha),
}


@dataclass(frozen=True)
class OnlineSettings:
    """Update rule and accuracy of one-pass stochastic gradient descent.

    Parameters
    ----------
    schedule : {"constant", "linear", "cosine", "inverse"}
        Factor of the learning rate: 1, a line or half a cosine wave to zero, or 1/(1 + alpha).
    batch_fraction : float in [0, 1]
        Sentences per step over d; the gradients of a batch are added. Zero: one sentence.
    spherical : bool
        Keep the length of every column of Q: each step ends with a rescaling.
    scale : float, optional
        Standard deviation of the entries of a random start; .1 by default.
    repetitions : int
        Runs at finite d.
    order : int
        Nodes of the Gauss-Hermite rule in each direction, in the limit of large d.
    seed : int
        Seed of all random numbers.

    Examples
    --------
    >>> dp.analysis.OnlineSettings(schedule="cosine").repetitions
    8
    """

    schedule: str = "constant"
    batch_fraction: float = 0.0
    spherical: bool = False
    scale: float | None = None
    repetitions: int = 8
    order: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        validation.choice("schedule", self.schedule, SCHEDULES)
        validation.number("batch_fraction", self.batch_fraction, at_least=0, at_most=1)
        if self.scale is not None:
            validation.number("scale", self.scale, above=0)
        validation.integer("repetitions", self.repetitions, at_least=1, at_most=2**16)
        validation.integer("order", self.order, at_least=4, at_most=64)
        validation.integer("seed", self.seed, at_least=0)


class OnlineFields(TypedDict, total=False):
    """The fields of `OnlineSettings` as keywords of a function."""

    schedule: str
    batch_fraction: float
    spherical: bool
    scale: float | None
    repetitions: int
    order: int
    seed: int
