"""Means of independent repetitions, and their standard errors."""

from __future__ import annotations

from typing import Any

import numpy as np


def error_of_mean(values: Any) -> Any:
    """Standard error of the mean over the first axis, from two or more repetitions."""
    return np.std(values, axis=0, ddof=1) / np.sqrt(len(values))


def mean_and_error(values: Any) -> tuple[float, float]:
    """Mean of numbers, and its standard error."""
    return float(np.mean(values)), float(error_of_mean(values))


def error_if_known(values: Any) -> float | None:
    """Standard error of a mean of numbers; None for fewer than two."""
    return float(error_of_mean(values)) if len(values) > 1 else None


def jackknife_error(left_out: Any) -> Any:
    """Standard error from estimates that each leave out one repetition; NaN if one is infinite."""
    with np.errstate(invalid="ignore"):
        return np.std(left_out, axis=0) * np.sqrt(len(left_out) - 1)
