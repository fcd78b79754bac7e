"""Standard errors of a fixed point, from the spread of independent scrambles."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from dotphase.numerics.quadrature import N_SCRAMBLES
from dotphase.theory.branches import BRANCHES
from dotphase.theory.classification import classify
from dotphase.theory.newton import Jacobian
from dotphase.theory.overlaps import MIN_WEIGHT, is_zero, norms_of
from dotphase.theory.point_evaluator import EvaluatedPoint
from dotphase.theory.settings import SolverSettings

#: Student's t: turns a standard error from eight scrambles into one that covers 68%.
STUDENT_T = 1.08
#: The error of scrambled Sobol averages falls about like points^-RATE (measured: .8 to 1).
RATE = 0.8
#: Largest increase of log2_points at once: errors from few points are rough.
MAX_INCREASE = 4


def scramble_values(
    evaluated: EvaluatedPoint, jacobian: Jacobian | None
) -> dict[str, Float[np.ndarray, " scrambles"]]:
    """Norms, training loss and test error that each scramble alone would give.

    The fixed point of scramble k alone is ``x + (1 - J)^{-1} (F_k(x) - F(x))``. The free energy is
    stationary, so its value at x serves for the training loss. The values are NaN without a
    Jacobian, unless the student is zero in all scrambles.
    """
    fixed_point_map, x = evaluated.map, evaluated.x
    averages = evaluated.expectations.per_scramble
    names = tuple(fixed_point_map.norms(x))
    shifts = np.zeros((N_SCRAMBLES, x.size))
    gradient = np.zeros(x.size)
    if jacobian is not None:
        shifts = jacobian.newton_step(evaluated.images - evaluated.image)
        gradient[jacobian.free] = jacobian.test_gradient
    elif not is_zero(evaluated.overlaps, fixed_point_map.model):
        return {name: np.full(N_SCRAMBLES, np.nan) for name in (*names, "train_loss", "test_error")}
    norms = [fixed_point_map.norms(x + shift) for shift in shifts]
    return {
        **{name: np.asarray([row[name] for row in norms]) for name in names},
        "train_loss": fixed_point_map.free_energy(x, averages),
        "test_error": fixed_point_map.test_error(averages) + shifts @ gradient,
    }


def standard_error(values: Float[np.ndarray, " scrambles"]) -> float:
    """Standard error of the mean of independent scrambles."""
    return STUDENT_T * float(np.std(values, ddof=1)) / math.sqrt(len(values))


def standard_errors(samples: dict[str, Float[np.ndarray, " scrambles"]]) -> dict[str, float]:
    """Standard error of every result."""
    return {name: standard_error(values) for name, values in samples.items()}


def largest_relative_error(evaluated: EvaluatedPoint, stderr: dict[str, float]) -> float:
    """Largest relative standard error of the results that do not vanish by symmetry."""
    ratios = list(relative_errors_of(evaluated, stderr).values())
    return float(np.max(ratios)) if np.all(np.isfinite(ratios)) else math.inf


def relative_errors_of(evaluated: EvaluatedPoint, stderr: dict[str, float]) -> dict[str, float]:
    """Relative standard errors of the results that do not vanish by symmetry."""
    model = evaluated.map.model
    values = norms_of(evaluated.overlaps)
    values |= {"train_loss": evaluated.train_loss, "test_error": evaluated.test_error}
    values["q"] = max(values["q"], MIN_WEIGHT * float(model.rho[0]))
    vanishing = BRANCHES[classify(model, evaluated.overlaps)].vanishing
    return {
        name: stderr[name] / value
        for name, value in values.items()
        if name not in vanishing and value > 0
    }


def relative_error(evaluated: EvaluatedPoint, jacobian: Jacobian | None) -> float:
    """Largest relative standard error at a point."""
    return largest_relative_error(evaluated, standard_errors(scramble_values(evaluated, jacobian)))


def required_log2_points(error: float, log2_points: int, settings: SolverSettings) -> int:
    """log2 of the points on which the largest relative error will meet the tolerance."""
    excess = min(max(error / settings.rtol, 1e-6), 1e6)
    increase = math.ceil(math.log2(excess) / RATE)
    return min(log2_points + min(increase, MAX_INCREASE), settings.max_log2_points)
