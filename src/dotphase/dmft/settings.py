"""Settings of the dynamics and of one pass, with its learning-rate schedules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from dotphase.config import validation
from dotphase.config.step_sizes import check_batch_fraction, check_momentum
from dotphase.finite_d.datasets import TEACHER_NORMS, check_dtype

#: Smallest and largest log2 of the sentences of an ensemble.
LOG2_RANGE = {"at_least": 6, "at_most": 24}


LearningRate = float | Callable[[float], float]

#: Factors of the learning rate by name: functions of alpha and of its last value.
SCHEDULES: dict[str, Callable[[np.ndarray, float], np.ndarray]] = {
    "constant": lambda alpha, end: np.ones_like(alpha),
    "linear": lambda alpha, end: 1 - alpha / end,
    "cosine": lambda alpha, end: 0.5 * (1 + np.cos(np.pi * alpha / end)),
    "inverse": lambda alpha, end: 1 / (1 + alpha),
}


@dataclass(frozen=True)
class DynamicsSettings:
    """Update rule and accuracy of the dynamics.

    Parameters
    ----------
    momentum : float in [0, 1)
        Momentum coefficient: a step adds this multiple of the previous step.
    batch_fraction : float in (0, 1]
        Size of a mini-batch over the number of sentences; each step draws a new mini-batch.
    scale : float, optional
        Standard deviation of the entries of a random start; .1 by default.
    log2_ensemble : int
        log2 of the effective sentences of a repetition; many steps raise it.
    repetitions : int
        Independent ensembles; their spread gives the standard error. At finite d, runs.
    rtol : float, optional
        Ensembles are doubled until the standard errors, relative to the largest value of each
        quantity, are below this at every step. Results of two sizes are then extrapolated to
        1/N = 0. With None there is one size, and a bias of order 1/N remains.
    max_log2_ensemble : int
        log2 of the largest ensemble.
    seed : int
        Seed of all random numbers.
    dtype : {"float64", "float32"}
        Precision of the history; float32 halves memory and time.
    teacher_norm : {"fixed", "random"}
        At finite d, as in `train`.

    Examples
    --------
    >>> import dotphase as dp
    >>> dp.analysis.DynamicsSettings(momentum=0.5).repetitions
    8
    """

    momentum: float = 0.0
    batch_fraction: float = 1.0
    scale: float | None = None
    log2_ensemble: int = 12
    repetitions: int = 8
    rtol: float | None = 0.01
    max_log2_ensemble: int = 13
    seed: int = 0
    dtype: str = "float64"
    teacher_norm: str = "fixed"

    def __post_init__(self) -> None:
        check_momentum(self.momentum)
        check_batch_fraction(self.batch_fraction)
        for name in ("log2_ensemble", "max_log2_ensemble"):
            validation.integer(name, getattr(self, name), **LOG2_RANGE)
        validation.integer("repetitions", self.repetitions, at_least=1, at_most=2**16)
        validation.integer("seed", self.seed, at_least=0)
        for name in ("scale", "rtol"):
            if getattr(self, name) is not None:
                validation.number(name, getattr(self, name), above=0)
        check_dtype(self.dtype)
        validation.choice("teacher_norm", self.teacher_norm, TEACHER_NORMS)


class DynamicsFields(TypedDict, total=False):
    """The fields of `DynamicsSettings` as keywords of a function."""

    momentum: float
    batch_fraction: float
    scale: float | None
    log2_ensemble: int
    repetitions: int
    rtol: float | None
    max_log2_ensemble: int
    seed: int
    dtype: str
    teacher_norm: str


@dataclass(frozen=True)
class OnlineSettings:
    """Update rule and accuracy of one-pass stochastic gradient descent.

    Parameters
    ----------
    schedule : {"constant", "linear", "cosine", "inverse"}
        Factor of the learning rate: 1, a line or half a cosine wave to zero, or 1/(1 + alpha).
    batch_fraction : float in [0, 1]
        Sentences per step over d; the gradients of a batch are added. Zero: one sentence. At
        finite d it is rounded to whole sentences.
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

    def batch(self, d: int) -> int:
        """Return the sentences of a step at finite d."""
        return max(1, round(self.batch_fraction * d))

    def duration(self, d: int | None) -> float:
        """Return the change of alpha in a step; zero for single sentences in the limit."""
        return self.batch_fraction if d is None else self.batch(d) / d

    def learning_rates(self, lr: LearningRate, end: float, alphas: np.ndarray) -> np.ndarray:
        """Return the learning rate at each alpha of a path that ends at `end`."""
        if callable(lr):
            base = [validation.number("lr", lr(alpha), at_least=0) for alpha in alphas.tolist()]
        else:
            base = [validation.number("lr", lr, above=0)]
        return np.maximum(base * SCHEDULES[self.schedule](alphas, end), 0.0)


class OnlineFields(TypedDict, total=False):
    """The fields of `OnlineSettings` as keywords of a function."""

    schedule: str
    batch_fraction: float
    spherical: bool
    scale: float | None
    repetitions: int
    order: int
    seed: int
