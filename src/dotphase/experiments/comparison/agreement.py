"""Rule for the agreement of two numbers, in `compare` and in the report."""

import math

from scipy.special import ndtr, stdtrit

#: Allowed difference in standard errors, and as a share of the number. The share covers errors
#: without an error bar: the length of a training, terms of order 1/d.
ERRORS, SHARE = 3.0, 0.01
#: Allowed difference between finite and infinite dimension, as a share of the number, times d.
FINITE_SIZE = 10.0

AGREES, DIFFERS = "agrees", "differs"


def allowed(reference: float, *errors: float, share: float = SHARE) -> float:
    """Largest difference that counts as agreement with `reference`."""
    return ERRORS * math.hypot(*errors) + share * abs(reference)


def student_factor(count: int) -> float:
    """Factor that gives `ERRORS` standard errors of a mean of few numbers the normal coverage."""
    return float(stdtrit(count - 1, ndtr(ERRORS))) / ERRORS


def judge(difference: float, limit: float) -> str:
    """Return the verdict on a difference; NaN does not agree."""
    return AGREES if abs(difference) <= limit else DIFFERS
