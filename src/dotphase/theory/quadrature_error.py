"""Standard errors of a fixed point, from the spread of independent scrambles."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from dotphase.numerics.quadrature import SCRAMBLES
from dotphase.theory.branches import BRANCHES
from dotphase.theory.classification import classify
from dotphase.theory.overlaps import NOTHING, is_nothing, norms_of
from dotphase.theory.point_iteration import Evaluation, Jacobian

#: Turns a standard error from few scrambles into one that covers 68% (Student's t).
SMALL_SAMPLE = 1.08


def scramble_values(
    here: Evaluation, jacobian: Jacobian | None
) -> dict[str, Float[np.ndarray, " scrambles"]]:
    """What each scramble alone would give for the norms, the training loss and the test error.

    Scramble k alone would have its fixed point at ``x + (1 - J)^{-1} (F_k(x) - F(x))``. The
    free energy is stationary, so its value at x itself serves for the training loss. Without
    a Jacobian nothing is known, unless the student is zero, which all scrambles agree on.
    """
    problem, x, averages = here.problem, here.x, here.answer.averages
    sizes = tuple(problem.norms(x))
    shifts = np.zeros((SCRAMBLES, x.size))
    slopes = np.zeros(x.size)
    if jacobian is not None:
        shifts = jacobian.newton(here.images - here.image)
        slopes[jacobian.free] = jacobian.test
    elif not is_nothing(here.overlaps, problem.model):
        return {name: np.full(SCRAMBLES, np.nan) for name in (*sizes, "train_loss", "test_error")}
    norms = [problem.norms(x + shift) for shift in shifts]
    return {
        **{name: np.asarray([one[name] for one in norms]) for name in sizes},
        "train_loss": problem.free_energy(x, averages),
        "test_error": problem.test_error(averages) + shifts @ slopes,
    }


def standard_error(values: Float[np.ndarray, " scrambles"]) -> float:
    """Standard error of the mean of independent scrambles."""
    return SMALL_SAMPLE * float(np.std(values, ddof=1)) / math.sqrt(len(values))


def standard_errors(samples: dict[str, Float[np.ndarray, " scrambles"]]) -> dict[str, float]:
    """Standard error of every result."""
    return {name: standard_error(values) for name, values in samples.items()}


def worst_error(here: Evaluation, errors: dict[str, float]) -> float:
    """Largest relative standard error of the results that do not vanish by symmetry."""
    model = here.problem.model
    values = norms_of(here.overlaps)
    values |= {"train_loss": here.train_loss, "test_error": here.test_error}
    vanishing = BRANCHES[classify(model, here.overlaps)].vanishing
    values["q"] = max(values["q"], NOTHING * float(model.rho[0]))
    shown = {name: value for name, value in values.items() if name not in vanishing}
    ratios = [errors[name] / value for name, value in shown.items() if value > 0]
    return float(np.max(ratios)) if np.all(np.isfinite(ratios)) else math.inf
