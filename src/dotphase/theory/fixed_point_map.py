"""What is solved: a map on vectors whose fixed points are those of state evolution."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Generic, TypeVar

import numpy as np
from jaxtyping import Bool, Float, Int

from dotphase.model import Model
from dotphase.numerics.fixed_point import Vector
from dotphase.theory.coordinates import Coordinates
from dotphase.theory.expectations import (
    Answer,
    AverageQuery,
    Evaluator,
    Query,
    Tracks,
    evaluator_of,
)
from dotphase.theory.overlaps import Conjugates, Overlaps, admissible, norms_of
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
#: The order parameters of a kind of problem.
O = TypeVar("O")
#: The averages it needs.
M = TypeVar("M")


@dataclass(frozen=True, eq=False)
class Problem(ABC, Generic[O, M]):
    """A map on vectors at one alpha: what is asked at x, and what follows from the answer.

    Kinds of problems differ in their order parameters and in the averages these ask for.
    """

    model: Model
    alpha: float

    @cached_property
    def evaluator(self) -> Evaluator:
        """The model, ready to be evaluated."""
        return evaluator_of(self.model)

    @abstractmethod
    def overlaps(self, x: Vector) -> O:
        """The overlaps with coordinates x."""

    @abstractmethod
    def query(
        self, x: Vector, log2_points: int, seed: int, tracks: Tracks, call: int
    ) -> Query[Answer]:
        """What has to be known at x: averages over points, with the proximal map started from
        `tracks`."""

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
        """eps_t at x, if it is a fixed point."""
        return self.free_energy(x, averages)

    @abstractmethod
    def test_error(self, averages: M) -> Values:
        """eps_g from the averages."""

    @abstractmethod
    def scale(self, x: Vector) -> Vector:
        """Sizes against which a change of each coordinate is measured."""

    @abstractmethod
    def admissible(self, x: Vector) -> bool:
        """Whether x describes Gaussian fields."""

    def free(self, x: Vector) -> Int[np.ndarray, " free"]:
        """Which coordinates move; the others are held."""
        return np.arange(x.size)


class Symmetric(Problem[Overlaps, Averages]):
    """State evolution of a model, which is replica symmetric, in coordinates x of the overlaps.

    Which coordinates those are, and what else is held, is for the kinds of problems to say:
    all overlaps are free (`Free`), or some are prescribed (`dotphase.theory.landscape`).
    """

    @abstractmethod
    def image(self, x: Vector, hats: Conjugates) -> np.ndarray:
        """The coordinates after one step, ``F(x)``; leading axes are kept."""

    def query(
        self, x: Vector, log2_points: int, seed: int, tracks: Tracks, call: int
    ) -> Query[Answer]:
        return AverageQuery(self.evaluator, self.overlaps(x), log2_points, seed, tracks, call)

    def conjugates(self, overlaps: Overlaps, averages: Averages) -> Conjugates:
        """Conjugate parameters from the averages at given overlaps."""
        return conjugates(self.model, self.alpha, overlaps, averages)

    def advance(self, x: Vector, averages: Averages) -> np.ndarray:
        try:
            return self.image(x, self.conjugates(self.overlaps(x), averages))
        except np.linalg.LinAlgError:
            return np.full_like(x, np.nan)

    def free_energy(self, x: Vector, averages: Averages) -> Values:
        return free_energy(self.model, self.alpha, self.overlaps(x), averages)

    def train_loss(self, x: Vector, averages: Averages) -> Values:
        return training_energy(self.model, self.alpha, self.overlaps(x), averages)

    def test_error(self, averages: Averages) -> Values:
        return test_error(self.model, averages)


@dataclass(frozen=True, eq=False)
class Free(Symmetric):
    """All overlaps are free, but for those that a symmetry of the start holds at zero.

    Attributes
    ----------
    coordinates : of the model's overlaps
    held : which coordinates are held at zero
    """

    coordinates: Coordinates
    held: Bool[np.ndarray, " n"]

    @classmethod
    def started(cls, model: Model, alpha: float, start: Overlaps) -> Free:
        """The problem that an iteration from `start` solves."""
        coordinates = Coordinates.of(model)
        held = coordinates.held_at_zero(coordinates.pack(start))
        return cls(model, alpha, coordinates, held)

    @property
    def opened(self) -> Free:
        """The same with nothing held."""
        return replace(self, held=np.zeros_like(self.held))

    def free(self, x: Vector) -> Int[np.ndarray, " free"]:
        return np.flatnonzero(~self.held)

    def overlaps(self, x: Vector) -> Overlaps:
        return self._unpack(np.asarray(x, dtype=float).tobytes())

    @cached_property
    def _unpack(self) -> Callable[[bytes], Overlaps]:
        # The same x is looked at several times on its way: asked, judged, measured.
        unpack = self.coordinates.unpack
        return lru_cache(maxsize=16)(lambda values: unpack(np.frombuffer(values)))

    def image(self, x: Vector, hats: Conjugates) -> np.ndarray:
        image = self.coordinates.pack(next_overlaps(self.model, hats))
        image[..., self.held] = 0.0
        return image

    def scale(self, x: Vector) -> Vector:
        return self.coordinates.scale(x)

    def admissible(self, x: Vector) -> bool:
        return admissible(self.model, self.overlaps(x))
