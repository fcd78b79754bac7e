"""The point to solve: a branch of a model at one alpha, and how precisely."""

from __future__ import annotations

from dataclasses import dataclass

from dotphase.model import Model
from dotphase.model.linear_layer import linear_test_error
from dotphase.theory.settings import SolverSettings


@dataclass(frozen=True, eq=False)
class PointSpec:
    """A branch of a model at one alpha, and how precisely to solve for it.

    Attributes
    ----------
    linear_test_error : test error of the linear positional layer, for comparison
    """

    model: Model
    alpha: float
    branch: str
    settings: SolverSettings
    linear_test_error: float

    @classmethod
    def of(cls, model: Model, alpha: float, branch: str, settings: SolverSettings) -> PointSpec:
        """The specification with the linear layer's test error filled in."""
        return cls(model, alpha, branch, settings, linear_test_error(model, seed=settings.seed))
