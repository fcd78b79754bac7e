"""What is solved: a map on vectors whose fixed points are those of state evolution."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

from dotphase.model import Model
from dotphase.theory.coordinates import Coordinates
from dotphase.theory.evaluate import Evaluator
from dotphase.theory.evolution import Averages, conjugates, next_overlaps
from dotphase.theory.overlaps import Conjugates, Overlaps, admissible

Vector = Float[np.ndarray, " n"]


@dataclass(frozen=True, eq=False)
class Problem(ABC):
    """State evolution of a model at one alpha, in coordinates x of the overlaps.

    Which coordinates those are, and what else is held, is for the kinds of problems to say:
    all overlaps are free (`Free`), or some are prescribed (`dotphase.theory.landscape`).
    """

    model: Model
    alpha: float

    @cached_property
    def evaluator(self) -> Evaluator:
        """The model, ready to be evaluated."""
        return Evaluator(self.model)

    @abstractmethod
    def overlaps(self, x: Vector) -> Overlaps:
        """The overlaps with coordinates x."""

    @abstractmethod
    def image(self, x: Vector, hats: Conjugates) -> np.ndarray:
        """The coordinates after one step, ``F(x)``; leading axes are kept."""

    @abstractmethod
    def scale(self, x: Vector) -> Vector:
        """Sizes against which a change of each coordinate is measured."""

    @abstractmethod
    def admissible(self, x: Vector) -> bool:
        """Whether x describes Gaussian fields."""

    def free(self, x: Vector) -> Int[np.ndarray, " free"]:
        """Which coordinates move; the others are held."""
        return np.arange(x.size)

    def conjugates(self, overlaps: Overlaps, averages: Averages) -> Conjugates:
        """Conjugate parameters from the averages at given overlaps."""
        return conjugates(self.model, self.alpha, overlaps, averages)

    def advance(self, x: Vector, averages: Averages) -> np.ndarray:
        """``F(x)`` from the averages at x; NaN where it is not defined."""
        try:
            return self.image(x, self.conjugates(self.overlaps(x), averages))
        except np.linalg.LinAlgError:
            return np.full_like(x, np.nan)


@dataclass(frozen=True, eq=False)
class Free(Problem):
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
        return self.coordinates.unpack(x)

    def image(self, x: Vector, hats: Conjugates) -> np.ndarray:
        image = self.coordinates.pack(next_overlaps(self.model, hats))
        image[..., self.held] = 0.0
        return image

    def scale(self, x: Vector) -> Vector:
        return self.coordinates.scale(x)

    def admissible(self, x: Vector) -> bool:
        return admissible(self.model, self.coordinates.unpack(x))
