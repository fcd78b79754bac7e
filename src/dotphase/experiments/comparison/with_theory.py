"""The theory beside trained students: what it says of each mechanism they found, at their d."""

from __future__ import annotations

from typing import TypeVar, Unpack

import numpy as np

from dotphase.experiments.theory.curve import SETTINGS
from dotphase.finite_d.runs import Prediction, Runs
from dotphase.theory.branches import BRANCHES
from dotphase.theory.finite_d_corrections import is_known
from dotphase.theory.settings import SolverFields, with_changes
from dotphase.theory.solution import Solution
from dotphase.theory.solve import solve_many

R = TypeVar("R", bound=Runs)

#: What theory and runs have in common.
COMPARED = ("train_loss", "test_error", "m", "theta", "q", "linear_test_error")


def with_theory(trained: R, **changes: Unpack[SolverFields]) -> R:
    """Runs with the numbers of the theory beside their means, in print and in `to_dict`.

    Every mechanism that was found is looked up: the branch of its name at the same alpha, with
    the terms of order 1/d of the losses where they are known (`dotphase.results.Solution.at`);
    all else is of the limit of large d. Where the theory has no such branch, or is not to be
    trusted, a note says so.

    Parameters
    ----------
    trained : Training or MessagePassing
        From `dotphase.train` or `dotphase.amp`.
    **changes
        As for `dotphase.solve`; as coarse as a curve by default.

    Examples
    --------
    >>> runs = dp.train(dp.positional_semantic(), alpha=2.0, d=40, seeds=2, start="semantic")
    >>> beside = dp.analysis.with_theory(runs, log2_points=12)
    >>> beside.theory["semantic"].at_d, beside.theory["semantic"]["m"]
    (('train_loss', 'test_error'), 0.0)
    """
    model = trained.model
    names = list(trained.mechanisms)
    problems = [(model, trained.alpha, name) for name in names if name in BRANCHES]
    solutions = solve_many(problems, settings=with_changes(None, SETTINGS, changes))
    found = {solution.branch: _expected(solution, trained.d) for solution in solutions}
    nothing = Prediction(note="the theory has no branch of this name")
    return trained.with_predictions({name: found.get(name, nothing) for name in names})


def _expected(solution: Solution, d: int) -> Prediction:
    """The numbers of a solution at dimension d, and what speaks against them."""
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
