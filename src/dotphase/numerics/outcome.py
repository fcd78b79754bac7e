"""Reasons for which an iteration stops, with a message for each."""

from __future__ import annotations

import enum


class Outcome(enum.IntEnum):
    """Reason for which an iteration stopped; a number inside compiled code."""

    RUNNING = 0
    CONVERGED = 1
    STEPS = 2
    STALLED = 3
    DIVERGED = 4
    NOISE_FLOOR = 5
    CYCLE = 6
    LEFT_DOMAIN = 7
    UNSETTLED = 8
    NOT_FINITE = 9
    TIME = 10

    @property
    def success(self) -> bool:
        """True if the iteration converged."""
        return self in (Outcome.CONVERGED, Outcome.NOISE_FLOOR)

    @property
    def word(self) -> str:
        """The outcome in one word, for datasets and JSON."""
        return self.name.lower()

    @property
    def message(self) -> str:
        """The outcome in a sentence."""
        return _MESSAGES[self]


_MESSAGES = {
    Outcome.RUNNING: "interrupted",
    Outcome.CONVERGED: "met the tolerance",
    Outcome.STEPS: "all steps were taken and the tolerance was not met",
    Outcome.STALLED: "no further progress at this floating-point precision",
    Outcome.DIVERGED: "diverged: grew without bound",
    Outcome.NOISE_FLOOR: "residual stands still at the noise of the quadrature "
    "(jumps of the proximal map)",
    Outcome.CYCLE: "the iteration cycles and shorter steps do not help",
    Outcome.LEFT_DOMAIN: "the iteration left the admissible overlaps (or met NaN) "
    "and could not return",
    Outcome.NOT_FINITE: "met numbers that are not finite",
    Outcome.TIME: "the time (max_seconds) ended before the tolerance was met",
    Outcome.UNSETTLED: "does not settle: the gradient stands still above the tolerance",
}
