"""Maps on vectors whose fixed points are those of state evolution."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Generic, TypeVar

import numpy as np
from jaxtyping import Bool, Float, Int

from dotphase.model import Model
from dotphase.numerics.fixed_point import Vector
from dotphase.theory.coordinates import Coordinates
from dotphase.theory.expectations import Evaluator, evaluator_of
from dotphase.theory.overlaps import Conjugates, ModelNumbers, Overlaps, admissible, norms_of
from dotphase.theory.state_evolution import (
    Averages,
    conjugates,
    free_energy,
    next_overlaps,
    test_error,
    training_energy,
)

#: Values with one entry per scramble, or none.
Values = Float[np.ndarray, "..."]
#: Type of the order parameters.
O = TypeVar("O")
#: Type of the averages.
M = TypeVar("M")


@dataclass(frozen=True, eq=False)
class FixedPointMap(ABC, Generic[O, M]):
    """A map ``F`` on vectors at one alpha, computed from averages at the overlaps of x.

    Subclasses differ in their order parameters and in the averages that these need.
    """

    model: Model
    alpha: float

    @cached_property
    def evaluator(self) -> Evaluator:
        """Compiled averages of the model."""
        return evaluator_of(self.model)

    @cached_property
    def numbers(self) -> Any:
        """Numbers of the model, for the algebra after the averages."""
        return ModelNumbers(self.model)

    @abstractmethod
    def overlaps(self, x: Vector) -> O:
        """The overlaps with coordinates x."""

    @abstractmethod
    def advance(self, x: Vector, averages: M) -> np.ndarray:
        """``F(x)`` from the averages at x; NaN where it is not defined. Leading axes are kept."""

    def norms(self, x: Vector) -> dict[str, float]:
        """Sizes of the overlaps by name."""
        return norms_of(self.overlaps(x))

    @abstractmethod
    def free_energy(self, x: Vector, averages: M) -> Values:
        """The training loss from a function that is stationary at the fixed point."""

    def train_loss(self, x: Vector, averages: M) -> Values:
        """The training loss eps_t at x, if x is a fixed point."""
        return self.free_energy(x, averages)

    @abstractmethod
    def test_error(self, averages: M) -> Values:
        """The test error eps_g from the averages."""

    @abstractmethod
    def scale(self, x: Vector) -> Vector:
        """Sizes against which a change of each coordinate is measured."""

    @abstractmethod
    def admissible(self, x: Vector) -> bool:
        """True if x describes Gaussian fields."""

    def free(self, x: Vector) -> Int[np.ndarray, " free"]:
        """Indices of the coordinates that move; the others are fixed."""
        return np.arange(x.size)


class ReplicaSymmetricMap(FixedPointMap[Overlaps, Averages]):
    """Replica-symmetric state evolution in coordinates x of the overlaps.

    Subclasses choose the coordinates: all overlaps are free (`StateEvolutionMap`), or some are
    prescribed (`dotphase.theory.landscape`).
    """

    @abstractmethod
    def image(self, x: Vector, hats: Conjugates) -> np.ndarray:
        """The coordinates after one step, ``F(x)``; leading axes are kept."""

    def conjugates(self, overlaps: Overlaps, averages: Averages) -> Conjugates:
        """Conjugate parameters from the averages at given overlaps."""
        return conjugates(self.numbers, self.alpha, overlaps, averages)

    def advance(self, x: Vector, averages: Averages) -> np.ndarray:
        try:
            return self.image(x, self.conjugates(self.overlaps(x), averages))
        except np.linalg.LinAlgError:
            return np.full_like(x, np.nan)

    def free_energy(self, x: Vector, averages: Averages) -> Values:
        return free_energy(self.numbers, self.alpha, self.overlaps(x), averages)

    def train_loss(self, x: Vector, averages: Averages) -> Values:
        return training_energy(self.numbers, self.alpha, self.overlaps(x), averages)

    def test_error(self, averages: Averages) -> Values:
        return test_error(self.numbers, averages)


@dataclass(frozen=True, eq=False)
class StateEvolutionMap(ReplicaSymmetricMap):
    """One step of state evolution in all overlaps, except those that a symmetry fixes at zero.

    Attributes
    ----------
    coordinates : coordinates of the model's overlaps
    fixed : which coordinates are fixed at zero
    """

    coordinates: Coordinates
    fixed: Bool[np.ndarray, " n"]

    @classmethod
    def from_initial(cls, model: Model, alpha: float, initial: Overlaps) -> StateEvolutionMap:
        """The map with the symmetries of `initial`."""
        coordinates = Coordinates.of(model)
        fixed = coordinates.fixed_at_zero(coordinates.pack(initial))
        return cls(model, alpha, coordinates, fixed)

    @property
    def unconstrained(self) -> StateEvolutionMap:
        """The same map with no coordinate fixed."""
        return replace(self, fixed=np.zeros_like(self.fixed))

    def free(self, x: Vector) -> Int[np.ndarray, " free"]:
        return np.flatnonzero(~self.fixed)

    def overlaps(self, x: Vector) -> Overlaps:
        return self._cached_unpack(np.asarray(x, dtype=float).tobytes())

    @cached_property
    def _cached_unpack(self) -> Callable[[bytes], Overlaps]:
        # One evaluation needs the overlaps of the same x several times.
        unpack = self.coordinates.unpack
        return lru_cache(maxsize=16)(lambda values: unpack(np.frombuffer(values)))

    def image(self, x: Vector, hats: Conjugates) -> np.ndarray:
        image = self.coordinates.pack(next_overlaps(self.numbers, hats))
        image[..., self.fixed] = 0.0
        return image

    def scale(self, x: Vector) -> Vector:
        return self.coordinates.scale(x)

    def admissible(self, x: Vector) -> bool:
        return admissible(self.numbers, self.overlaps(x))
