"""Settings of message passing."""

from dataclasses import dataclass
from typing import TypedDict

from dotphase.config import validation
from dotphase.finite_d.datasets import TEACHER_NORMS
from dotphase.finite_d.measurement import HELD_OUT

#: Default damping: weight of the old values in a step.
DAMPING = 0.5
#: Default damping from the positional start, where the iteration oscillates.
POSITIONAL_DAMPING = 0.8
#: Gradient norm over sqrt(d) at which a run has converged.
TOLERANCE = 1e-8


@dataclass(frozen=True)
class AmpSettings:
    """Damping, length and accuracy of message passing.

    Parameters
    ----------
    damping : float in [0, 1), optional
        Weight of the old values in a step; by default .5, and .8 for the positional start.
    iterations : int
        Largest number of iterations.
    tolerance : float
        Norm of the gradient of the training loss over sqrt(d) at which a run has converged.
    held_out : int
        Number of fresh sentences for `test_error_sampled`.
    seed : int
        Seed of all random numbers.
    teacher_norm : {"fixed", "random"}
        ``Q*^T Q*/d`` of the teachers: exactly the identity, or that of entries from ``N(0, 1)``.

    Examples
    --------
    >>> import dotphase as dp
    >>> dp.AmpSettings(damping=0.3).damping_from("positional")
    0.3
    """

    damping: float | None = None
    iterations: int = 400
    tolerance: float = TOLERANCE
    held_out: int = HELD_OUT
    seed: int = 0
    teacher_norm: str = "fixed"

    def __post_init__(self) -> None:
        if self.damping is not None:
            validation.number("damping", self.damping, at_least=0, at_most=0.99)
        validation.choice("teacher_norm", self.teacher_norm, TEACHER_NORMS)
        validation.number("tolerance", self.tolerance, above=0)
        for name, at_least in {"iterations": 1, "held_out": 2, "seed": 0}.items():
            validation.integer(name, getattr(self, name), at_least=at_least)

    def damping_from(self, start: object) -> float:
        """Return the damping of runs from a start."""
        if self.damping is not None:
            return float(self.damping)
        return POSITIONAL_DAMPING if start == "positional" else DAMPING


class AmpFields(TypedDict, total=False):
    """The fields of `AmpSettings` as keywords of a function."""

    damping: float | None
    iterations: int
    tolerance: float
    held_out: int
    seed: int
    teacher_norm: str
