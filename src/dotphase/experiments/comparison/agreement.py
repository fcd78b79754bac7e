"""When two numbers agree: the rule of the report and of `compare`."""

from __future__ import annotations

import math

#: How many standard errors, and which share of the number, may lie between two numbers. The
#: share is for what no error bar knows of: the length of a training, the order of 1/d.
ERRORS, SHARE = 3.0, 0.01
#: What a number may differ by between finite and infinite dimension, times d and as a share of
#: itself: losses and overlaps have terms of a few times 1/d.
FINITE_SIZE = 10.0

AGREES, DIFFERS = "agrees", "differs"


def allowed(reference: float, *errors: float, share: float = SHARE) -> float:
    """Largest difference that counts as agreement with `reference`."""
    return ERRORS * math.hypot(*errors) + share * abs(reference)


def judge(difference: float, most: float) -> str:
    """A verdict is always given: what cannot be compared (NaN) does not agree."""
    return AGREES if abs(difference) <= most else DIFFERS
