"""Settings of training."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypedDict

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from dotphase.config import validation
from dotphase.config.step_sizes import StepSize, check_momentum, is_constant, step_sizes
from dotphase.errors import InvalidInput
from dotphase.finite_d.datasets import TEACHER_NORMS, check_dtype
from dotphase.finite_d.measurement import HELD_OUT
from dotphase.training.loop import Optimizer
from dotphase.training.optimizers import OPTIMIZERS
from dotphase.training.single_run import Recipe

#: Gradient norm over sqrt(d) at which training stops, by precision.
TOLERANCE = {"float64": 1e-6, "float32": 1e-5}
#: Largest tolerance and scale; products of larger numbers overflow.
LARGEST = 1e100
#: Sentences of a mini-batch.
MINIBATCH = 128
#: Momentum coefficient.
MOMENTUM = 0.9
#: Settings that change no result of experiments with many students.
WITHOUT_EFFECT = ("held_out", "runs_per_batch")


@dataclass(frozen=True)
class TrainingSettings:
    """Settings of training.

    Parameters
    ----------
    optimizer : name of an optimizer
        One of `dotphase.training.optimizers`; `dotphase.training.loop` defines a step.
    steps : int, optional
        Maximum number of steps; the default depends on the optimizer.
    lr : float, sequence or callable, optional
        Step size; one for each step; or a function of the step's index, from 0 on. The default
        depends on the optimizer.
    tolerance : float, optional
        Norm of the gradient over sqrt(d) at which a run has converged; by default 1e-6, and 1e-5
        in single precision.
    minibatch : int
        Sentences in a mini-batch of sgd; all sentences if there are fewer. The other optimizers
        use all sentences in every step.
    fresh : bool
        One pass with sgd: every step uses the next `minibatch` sentences, each of them once. A step
        is ``Q <- Q - lr * (sum of their gradients + minibatch (ridge/d) Q)``, as in `dp.online`.
    momentum : float in [0, 1)
        Momentum coefficient of the optimizer `momentum`.
    held_out : int
        Fresh sentences for `test_error_sampled`, rounded up to whole blocks.
    scale : float, optional
        Standard deviation of random entries: of all entries of a random start, of the columns that
        other starts do not define; by default 0.1.
    seed : int
        Root seed. Run k depends on neither the number of runs nor `runs_per_batch`.
    dtype : {"float64", "float32"}
        Precision of data and training.
    runs_per_batch : int, optional
        Runs trained at once; by default as many as fit into memory.
    teacher_norm : {"fixed", "random"}
        ``Q*^T Q*/d`` of the teachers: exactly the identity, or that of entries from ``N(0, 1)``.

    Examples
    --------
    >>> import dotphase as dp
    >>> quick = dp.TrainingSettings(optimizer="adam", steps=100)
    >>> quick.step_size
    0.01
    """

    optimizer: str = "lbfgs"
    steps: int | None = None
    lr: StepSize | None = None
    tolerance: float | None = None
    minibatch: int = MINIBATCH
    fresh: bool = False
    momentum: float = MOMENTUM
    held_out: int = HELD_OUT
    scale: float | None = None
    seed: int = 0
    dtype: str = "float64"
    runs_per_batch: int | None = None
    teacher_norm: str = "fixed"

    def __post_init__(self) -> None:
        OPTIMIZERS.check(self.optimizer, "optimizer")
        if self.lr is not None and self.algorithm.lr is None:
            rule = f"must not be given: {self.optimizer} chooses its own steps"
            raise InvalidInput("lr", self.lr, rule)
        if self.fresh and self.optimizer != "sgd":
            raise InvalidInput("fresh", self.fresh, "must be False, unless the optimizer is sgd")
        for name in ("tolerance", "scale"):
            if getattr(self, name) is not None:
                validation.number(name, getattr(self, name), above=0, at_most=LARGEST)
        minima = {"steps": 1, "minibatch": 1, "held_out": 2, "seed": 0, "runs_per_batch": 1}
        for name, at_least in minima.items():
            if getattr(self, name) is not None:
                validation.integer(name, getattr(self, name), at_least=at_least)
        validation.choice("teacher_norm", self.teacher_norm, TEACHER_NORMS)
        check_momentum(self.momentum)
        check_dtype(self.dtype)
        if self.lr is not None:
            step_sizes(self.lr, self.max_steps)

    @property
    def algorithm(self) -> Optimizer:
        """Optimizer registered under the name `optimizer`."""
        return OPTIMIZERS[self.optimizer]

    @property
    def precision(self) -> np.dtype:
        """Precision of data and training."""
        return check_dtype(self.dtype)

    @property
    def max_steps(self) -> int:
        """Maximum number of steps, by default that of the optimizer."""
        return self.algorithm.steps if self.steps is None else self.steps

    @property
    def has_fixed_steps(self) -> bool:
        """True for optimizers that do not choose the size of their steps: a run takes all steps."""
        return self.algorithm.lr is not None

    @property
    def step_size(self) -> float | Float[np.ndarray, " steps"]:
        """Step size, by default that of the optimizer; an array if it changes with the step."""
        lr = (self.algorithm.lr or 1.0) if self.lr is None else self.lr
        sizes = step_sizes(lr, self.max_steps)
        return float(sizes[0]) if is_constant(sizes) else sizes

    def for_endpoint(self) -> TrainingSettings:
        """Return settings for many students of which only the final weights matter.

        Steps without an explicit size may then be larger than along a path of interest. Only double
        precision is allowed.
        """
        if self.dtype != "float64":
            raise InvalidInput("dtype", self.dtype, "must be float64 in this experiment")
        if self.fresh:
            raise InvalidInput("fresh", self.fresh, "must be False here; dp.train takes one pass")
        steps = self.algorithm.endpoint_steps if self.steps is None else self.steps
        lr = self.algorithm.endpoint_lr if self.lr is None else self.lr
        return replace(self, steps=steps, lr=lr)

    def for_data(self, n: int) -> TrainingSettings:
        """Return settings for n sentences: one pass ends when all of them are used."""
        if not self.fresh:
            return self
        max_steps, steps = n // self.minibatch, self.steps or 1
        if steps > max_steps:
            rule = f"must be >= steps x minibatch = {steps * self.minibatch} in one pass"
            raise InvalidInput("number of sentences", n, rule)
        return replace(self, steps=self.steps or max_steps)

    def recipe(self, d: int) -> Recipe:
        """Return the settings as compiled code takes them."""
        dtype, tolerance = self.precision, self.tolerance or TOLERANCE[self.precision.name]
        return Recipe(
            optimizer=self.algorithm,
            minibatch=self.minibatch,
            fresh=self.fresh,
            lr=jnp.asarray(self.step_size, dtype),
            steps=jnp.asarray(self.max_steps),
            tolerance=jnp.asarray(tolerance * float(np.sqrt(d)), dtype),
            momentum=jnp.asarray(self.momentum, dtype),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the settings that have a value, with the defaults of the optimizer."""
        values = {**vars(self), "steps": self.max_steps}
        if self.has_fixed_steps:
            values["lr"] = np.asarray(self.step_size).tolist()
        return {name: value for name, value in values.items() if value is not None}

    def endpoint_config(self) -> dict[str, Any]:
        """Return the settings that determine the final weights and their measurements."""
        described = self.to_dict()
        return {name: described[name] for name in described if name not in WITHOUT_EFFECT}


class TrainingFields(TypedDict, total=False):
    """Fields of `TrainingSettings`, as keywords of the functions that train."""

    optimizer: str
    steps: int | None
    lr: StepSize | None
    tolerance: float | None
    minibatch: int
    fresh: bool
    momentum: float
    held_out: int
    scale: float | None
    seed: int
    dtype: str
    runs_per_batch: int | None
    teacher_norm: str
