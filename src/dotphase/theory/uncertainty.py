"""Standard errors of a fixed point, from the spread of independent scrambles."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from dotphase.fields import SCRAMBLES
from dotphase.theory.branches import classify
from dotphase.theory.evaluate import Answer
from dotphase.theory.evolution import free_energy, test_error, training_energy
from dotphase.theory.lane import Jacobian, Lane
from dotphase.theory.overlaps import Overlaps
from dotphase.theory.solution import norms_of

Vector = Float[np.ndarray, " n"]

#: Turns a standard error from few scrambles into one that covers 68% (Student's t).
SMALL_SAMPLE = 1.08


def standard_errors(
    lane: Lane, x: Vector, answer: Answer, jacobian: Jacobian | None
) -> dict[str, float]:
    """Standard errors from the spread of the scrambles.

    Scramble k alone would have its fixed point at ``x + (1 - J)^{-1} (F_k(x) - F(x))``. The
    free energy is stationary, so its error is the spread at x itself.
    """
    names = (*Overlaps._fields, "train_loss", "test_error")
    if jacobian is None:
        return dict.fromkeys(names, math.nan)
    shifts = jacobian.newton(lane.images(x, answer) - lane.image(x, answer))
    overlaps = lane.coordinates.unpack(x)
    spread: dict[str, list[float]] = {name: [] for name in Overlaps._fields}
    for shift in shifts:
        for name, value in norms_of(lane.coordinates.unpack(x + shift)).items():
            spread[name].append(value)
    losses = free_energy(lane.model, lane.alpha, overlaps, answer.averages)
    tests = test_error(lane.model, answer.averages) + shifts[:, jacobian.free] @ jacobian.test
    samples = {**spread, "train_loss": losses, "test_error": tests}
    factor = SMALL_SAMPLE / math.sqrt(SCRAMBLES)
    return {name: factor * float(np.std(samples[name], ddof=1)) for name in names}


def worst_error(lane: Lane, x: Vector, answer: Answer, errors: dict[str, float]) -> float:
    """Largest relative standard error of the results that do not vanish by symmetry."""
    overlaps = lane.coordinates.unpack(x)
    values = {
        **norms_of(overlaps),
        "train_loss": float(training_energy(lane.model, lane.alpha, overlaps, answer.mean)),
        "test_error": float(test_error(lane.model, answer.mean)),
    }
    found = classify(lane.model, overlaps)
    vanishing = {"semantic": ["m"], "positional": ["theta"], "uninformed": ["m", "theta"]}
    ratios = [
        errors[name] / value
        for name, value in values.items()
        if value > 0 and name not in vanishing.get(found, [])
    ]
    return float(np.max(ratios)) if np.all(np.isfinite(ratios)) else math.inf
