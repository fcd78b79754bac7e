"""Predictions of the theory for the mechanisms of trained students, at their dimension.

The names of mechanisms have fixed thresholds. The theory knows better where a student can end: in a
minimum of the training loss. Students are therefore renamed after the nearest minimum.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar, Unpack

import numpy as np

from dotphase.experiments.theory.curve import SETTINGS
from dotphase.finite_d.overlaps import positional_alignment
from dotphase.finite_d.runs import Prediction, Run, Runs
from dotphase.runtime.progress import ProgressCallback
from dotphase.theory.branches import BRANCHES
from dotphase.theory.finite_d_corrections import is_known
from dotphase.theory.settings import SolverFields, SolverSettings, with_changes
from dotphase.theory.solution import Solution
from dotphase.theory.solve import solve_many

R = TypeVar("R", bound=Runs)

#: Quantities of both theory and runs.
COMPARED = ("train_loss", "test_error", "m", "theta", "q", "linear_test_error")
#: Distance in the plane of the two alignments up to which a student belongs to a minimum without a
#: search for others, and beyond which it belongs to none.
NEAR, FAR = 0.25, 0.5
#: Share of the distance to the second-nearest minimum up to which a student belongs to the nearest.
CLEARLY_NEARER = 2 / 3
#: Name of students between two minima, or far from all of them.
UNCERTAIN = "uncertain"


def with_theory(
    trained: R,
    *,
    progress: ProgressCallback | None = None,
    settings: SolverSettings | None = None,
    **changes: Unpack[SolverFields],
) -> R:
    """Return runs with the predictions of the theory, for `print` and `to_dict`.

    Each student is compared with the minimum of the theory at the same alpha whose alignments with
    teacher and positions are nearest to its own, and `Run.mechanism` becomes the name of that
    branch. Between two minima it is "uncertain". Saddles are never compared with: training leaves
    them. Losses contain the terms of order 1/d if they are known (`dotphase.results.Solution.at`);
    all other numbers are limits of large d. A note explains missing and unreliable predictions.

    Parameters
    ----------
    trained : Training or MessagePassing
        From `dotphase.train` or `dotphase.amp`.
    progress : callable, optional
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
    model, chosen = trained.model, with_changes(settings, SETTINGS, changes)

    def solve(names: Sequence[str]) -> dict[str, Solution]:
        points = [(model, trained.alpha, name) for name in names]
        solutions = solve_many(points, progress=progress, settings=chosen) if points else []
        return {solution.branch: solution for solution in solutions}

    solutions = solve([name for name in trained.mechanisms if name in BRANCHES])
    if not all(_is_near(run, solutions) for run in trained.runs if not run.diverged):
        excluded = set() if np.any(np.asarray(model.gram)) else {"positional", "mixed"}
        excluded |= {name for name, branch in BRANCHES.items() if branch.variant_of}
        solutions |= solve([name for name in BRANCHES if name not in {*solutions, *excluded}])
    minima = {name: _alignments(end) for name, end in solutions.items() if end.is_minimum}
    if minima:
        runs = tuple(replace(run, assigned=_nearest(run, minima)) for run in trained.runs)
        trained = replace(trained, runs=runs)
    predictions = {name: _predict(solution, trained.d) for name, solution in solutions.items()}
    predictions[UNCERTAIN] = Prediction(note="no minimum of the theory is clearly the nearest")
    missing = Prediction(note="the theory has no branch of this name")
    names = list(trained.mechanisms)
    return trained.with_predictions({name: predictions.get(name, missing) for name in names})


def _is_near(run: Run, solutions: Mapping[str, Solution]) -> bool:
    """True if the minimum of the student's mechanism is so near that no other is searched for."""
    solution = solutions.get(run.mechanism)
    if solution is None or not solution.is_minimum:
        return False
    return _distance(run, _alignments(solution)) < NEAR


def _alignments(solution: Solution) -> tuple[float, float]:
    """Alignments of the weights of a solution with teacher and positions, as in `Run`."""
    model, norms = solution.model, solution.norms
    size = float(np.trace(np.asarray(solution.overlaps.q)[0])) * float(model.rho[0])
    semantic = norms["theta"] / (np.sqrt(size * model.teacher_rank) + np.finfo(float).tiny)
    return float(semantic), float(positional_alignment(norms["m"], norms["q"]))


def _distance(run: Run, minimum: tuple[float, float]) -> float:
    """Distance of a student from a minimum in the plane of the alignments."""
    semantic, positional = minimum
    return float(np.hypot(run.semantic_alignment - semantic, run.positional_alignment - positional))


def _nearest(run: Run, minima: Mapping[str, tuple[float, float]]) -> str:
    """Name of the minimum that is clearly the nearest to a student, or `UNCERTAIN`."""
    distances = {name: _distance(run, minimum) for name, minimum in minima.items()}
    nearest, *farther = sorted(distances, key=lambda name: distances[name])
    limit = min([FAR, *(CLEARLY_NEARER * distances[name] for name in farther)])
    return nearest if distances[nearest] <= limit else UNCERTAIN


def _predict(solution: Solution, d: int) -> Prediction:
    """The numbers of a solution at dimension d, with a note if they are missing or unreliable."""
    if not solution.converged:
        return Prediction(note=solution.message)
    if not solution.matches_branch:
        return Prediction(note="no such branch at this alpha")
    stability = solution.stability
    doubt = f"{stability.described}; {stability.reason}"
    if not solution.is_minimum:
        return Prediction(note=doubt)
    finite = solution.at(d) if is_known(solution.model) else None
    values = {name: (finite or solution).value(name) for name in COMPARED}
    return Prediction(
        {name: value for name, value in values.items() if np.isfinite(value)},
        {**solution.stderr, **(finite.stderr if finite else {})},
        tuple(finite.terms) if finite else (),
        "" if stability.trusted else doubt,
    )
