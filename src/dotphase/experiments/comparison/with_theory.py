"""Predictions of the theory for the mechanisms of trained students, at their dimension."""

from __future__ import annotations

from typing import TypeVar, Unpack

import numpy as np

from dotphase.experiments.theory.curve import SETTINGS
from dotphase.finite_d.runs import Prediction, Runs
from dotphase.runtime.progress import Progress
from dotphase.theory.branches import BRANCHES
from dotphase.theory.finite_d_corrections import is_known
from dotphase.theory.settings import SolverFields, SolverSettings, with_changes
from dotphase.theory.solution import Solution
from dotphase.theory.solve import solve_many

R = TypeVar("R", bound=Runs)

#: Quantities of both theory and runs.
COMPARED = ("train_loss", "test_error", "m", "theta", "q", "linear_test_error")


def with_theory(
    trained: R,
    *,
    progress: Progress = None,
    settings: SolverSettings | None = None,
    **changes: Unpack[SolverFields],
) -> R:
    """Return runs with the predictions of the theory, for `print` and `to_dict`.

    Each mechanism of the runs is compared with the branch of its name at the same alpha. Losses
    contain the terms of order 1/d if they are known (`dotphase.results.Solution.at`); all other
    numbers are limits of large d. A note explains missing and unreliable predictions.

    Parameters
    ----------
    trained : Training or MessagePassing
        From `dotphase.train` or `dotphase.amp`.
    progress : bool or callable, optional
        Receives an event with each solution (`dotphase.results.ProgressEvent`).
    settings, **changes
        As for `dotphase.solve`, with the coarse default of a curve.

    Examples
    --------
    >>> runs = dp.train(dp.positional_semantic(), alpha=2.0, d=40, seeds=2, start="semantic")
    >>> predicted = dp.analysis.with_theory(runs, log2_points=12)
    >>> predicted.theory["semantic"].at_d, predicted.theory["semantic"]["m"]
    (('train_loss', 'test_error'), 0.0)
    """
    model = trained.model
    names = list(trained.mechanisms)
    points = [(model, trained.alpha, name) for name in names if name in BRANCHES]
    chosen = with_changes(settings, SETTINGS, changes)
    solutions = solve_many(points, progress=progress, settings=chosen)
    predictions = {solution.branch: _predict(solution, trained.d) for solution in solutions}
    missing = Prediction(note="the theory has no branch of this name")
    return trained.with_predictions({name: predictions.get(name, missing) for name in names})


def _predict(solution: Solution, d: int) -> Prediction:
    """The numbers of a solution at dimension d, with a note if they are missing or unreliable."""
    if not solution.converged:
        return Prediction(note=solution.message)
    if not solution.matches_branch:
        return Prediction(note="no such branch at this alpha")
    finite = solution.at(d) if is_known(solution.model) else None
    values = {name: (finite or solution).value(name) for name in COMPARED}
    stability = solution.stability
    doubt = f"{stability.described}; {stability.reason}"
    return Prediction(
        {name: value for name, value in values.items() if np.isfinite(value)},
        {**solution.stderr, **(finite.stderr if finite else {})},
        tuple(finite.terms) if finite else (),
        "" if stability.trusted else doubt,
    )
