"""Settings of training."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypedDict

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from dotphase.config import validation
from dotphase.config.step_sizes import StepSize, check_momentum, is_constant, step_sizes
from dotphase.errors import InvalidInput
from dotphase.finite_d.datasets import check_dtype
from dotphase.finite_d.measurement import HELD_OUT
from dotphase.training.kernel import Recipe
from dotphase.training.loop import Optimizer
from dotphase.training.optimizers import OPTIMIZERS

#: Gradient norm over sqrt(d) at which training stops, by precision.
TOLERANCE = {"float64": 1e-6, "float32": 1e-5}
#: Largest step and scale of a start: beyond, products of weights are no numbers.
LARGEST = 1e100
#: Sentences of a mini-batch.
MINIBATCH = 128
#: Share of the last step that is added.
MOMENTUM = 0.9


@dataclass(frozen=True)
class TrainingSettings:
    """How students are trained.

    Parameters
    ----------
    optimizer : name of an optimizer
        One of `dotphase.training.optimizers`; see `dotphase.training.loop` for what a step is.
    steps : int, optional
        Most steps; each optimizer has its own default.
    lr : float, sequence or callable, optional
        Size of a step; of each step; or as a function of its number, from 0 on. Each optimizer has
        its own default.
    tolerance : float, optional
        Norm of the gradient over sqrt(d) at which a run has converged; 1e-6, and 1e-5 in single
        precision, if not given.
    minibatch : int
        Sentences in a mini-batch of sgd; all of them where there are fewer. The other optimizers
        take all at every step.
    momentum : float in [0, 1)
        Share of the last step that the optimizer `momentum` adds.
    held_out : int
        Fresh sentences for `test_error_sampled`, rounded up to whole blocks.
    scale : float, optional
        Standard deviation of the entries of a random start, .1 if not given; for the other
        starts that of columns nothing else is said of.
    seed : int
        Seed of everything random; run k is the same whatever the number of runs and `batch` are,
        and `Run.seed` is k, counted from zero.
    dtype : {"float64", "float32"}
        Precision of data and training.
    batch : int, optional
        Runs trained at once; chosen to fit into memory if not given.

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
    momentum: float = MOMENTUM
    held_out: int = HELD_OUT
    scale: float | None = None
    seed: int = 0
    dtype: str = "float64"
    batch: int | None = None

    def __post_init__(self) -> None:
        OPTIMIZERS.check(self.optimizer, "optimizer")
        if self.lr is not None and self.algorithm.lr is None:
            rule = f"must not be given: {self.optimizer} chooses its own steps"
            raise InvalidInput("lr", self.lr, rule)
        for name in ("tolerance", "scale"):
            if getattr(self, name) is not None:
                validation.number(name, getattr(self, name), above=0, at_most=LARGEST)
        least = {"steps": 1, "minibatch": 1, "held_out": 2, "seed": 0, "batch": 1}
        for name, at_least in least.items():
            if getattr(self, name) is not None:
                validation.integer(name, getattr(self, name), at_least=at_least)
        check_momentum(self.momentum)
        check_dtype(self.dtype)
        if self.lr is not None:
            step_sizes(self.lr, self.most_steps)

    @property
    def algorithm(self) -> Optimizer:
        """Optimizer registered under the name `optimizer`."""
        return OPTIMIZERS[self.optimizer]

    @property
    def precision(self) -> np.dtype:
        """Precision of data and training."""
        return check_dtype(self.dtype)

    @property
    def most_steps(self) -> int:
        """Most steps, those of the optimizer if no others are given."""
        return self.algorithm.steps if self.steps is None else self.steps

    @property
    def budgeted(self) -> bool:
        """Whether the number of steps is meant, rather than a limit on the way to the tolerance."""
        return self.algorithm.lr is not None

    @property
    def step_size(self) -> float | Float[np.ndarray, " steps"]:
        """Size of a step, that of the optimizer if no other is given; of each step if they
        differ."""
        lr = (self.algorithm.lr or 1.0) if self.lr is None else self.lr
        sizes = step_sizes(lr, self.most_steps)
        return float(sizes[0]) if is_constant(sizes) else sizes

    def for_the_end(self) -> TrainingSettings:
        """The same where many students are trained and only the end is looked at: steps that are
        not given may be larger than those of a path worth following."""
        steps = self.algorithm.end_steps if self.steps is None else self.steps
        return replace(self, steps=steps, lr=self.algorithm.end_lr if self.lr is None else self.lr)

    def recipe(self, d: int) -> Recipe:
        """What compiled code takes."""
        kind, tolerance = self.precision, self.tolerance or TOLERANCE[self.precision.name]
        return Recipe(
            optimizer=self.algorithm,
            minibatch=self.minibatch,
            lr=jnp.asarray(self.step_size, kind),
            steps=jnp.asarray(self.most_steps),
            tolerance=jnp.asarray(tolerance * float(np.sqrt(d)), kind),
            momentum=jnp.asarray(self.momentum, kind),
        )


class TrainingFields(TypedDict, total=False):
    """The fields of `TrainingSettings` as keywords of a function."""

    optimizer: str
    steps: int | None
    lr: StepSize | None
    tolerance: float | None
    minibatch: int
    momentum: float
    held_out: int
    scale: float | None
    seed: int
    dtype: str
    batch: int | None
