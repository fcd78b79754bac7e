"""Solve state evolution: one point, many points, or branches along alpha.

These functions check their arguments. One point is solved by
`dotphase.theory.solve_with_retries`, which calls `dotphase.theory.solve_point`; a branch along
alpha by `dotphase.theory.continuation`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Literal, Unpack, overload

import numpy as np

from dotphase.config import validation
from dotphase.errors import InvalidInput
from dotphase.model import memory_check
from dotphase.model.definition import Model, check_model, refuse
from dotphase.numerics.quadrature import LOG2_BLOCK_SIZE
from dotphase.runtime.precision import in_double_precision
from dotphase.runtime.progress import Progress, ProgressCounter
from dotphase.theory.branch_processes import in_processes, worth_it
from dotphase.theory.branches import BRANCHES
from dotphase.theory.classification import CUSTOM
from dotphase.theory.continuation import continue_branch
from dotphase.theory.driver import evaluation_hook, run_all, run_quietly
from dotphase.theory.one_rsb.result import Broken, Complexity
from dotphase.theory.one_rsb.solve import break_symmetry, count_minima
from dotphase.theory.overlaps import Overlaps, check_overlaps
from dotphase.theory.settings import (
    BREAKING,
    DEFAULT,
    SolverFields,
    SolverSettings,
    check_alpha,
    with_changes,
)
from dotphase.theory.solution import Solution
from dotphase.theory.solve_with_retries import solve_with_retries

#: A model, alpha, and the branch or the overlaps to start from.
SolveRequest = tuple[Model, float, str | Overlaps]


@overload
def solve(
    model: Model,
    alpha: float,
    start: str | Overlaps = "semantic",
    *,
    breaking: Literal[0] = 0,
    progress: Progress = None,
    settings: SolverSettings | None = None,
    **changes: Unpack[SolverFields],
) -> Solution: ...


@overload
def solve(
    model: Model,
    alpha: float,
    start: str | Overlaps = "semantic",
    *,
    breaking: Literal[1],
    inner: int | None = None,
    progress: Progress = None,
    settings: SolverSettings | None = None,
    **changes: Unpack[SolverFields],
) -> Broken: ...


@in_double_precision
def solve(
    model: Model,
    alpha: float,
    start: str | Overlaps = "semantic",
    *,
    breaking: int = 0,
    inner: int | None = None,
    progress: Progress = None,
    settings: SolverSettings | None = None,
    **changes: Unpack[SolverFields],
) -> Solution | Broken:
    """Solve state evolution at one sample complexity.

    Parameters
    ----------
    model : Model
        Teacher, student and data.
    alpha : float
        Samples per dimension, n/d.
    start : str or Overlaps
        Branch to follow ("semantic", "positional", "uninformed", "mixed"), or overlaps to start
        from.
    breaking : 0 or 1
        Steps of replica symmetry breaking; state evolution has none.
    inner : int, optional
        With breaking, the most points of the averages inside a cluster of minima.
    progress : bool or callable, optional
        Receives an event with each evaluation of the averages and one with the solution; True
        shows them in a line, None does so after a while in notebooks and interactive sessions.
    settings : SolverSettings, optional
        How precisely to solve.
    **changes
        Fields of the settings by name: `rtol`, `log2_points`, `max_log2_points`, `seed`,
        `iteration`, `max_seconds`;
        with breaking, `rtol` is 5e-4 and `max_log2_points` 19 by default.

    Returns
    -------
    Solution or Broken
        Check `found`, `converged` and `stability.trusted` before use. With `breaking=1` a
        `dotphase.results.Broken`.

    Examples
    --------
    >>> solution = dp.solve(dp.positional_semantic(), alpha=2.0, log2_points=12)
    >>> solution.found, solution.converged
    ('semantic', True)
    >>> round(solution.test_error, 4)
    0.0014
    """
    if validation.integer("breaking", breaking, at_least=0, at_most=1) == 0:
        if inner is not None:
            raise InvalidInput("inner", inner, "needs breaking=1")
        settings = with_changes(settings, DEFAULT, changes)
        job = _solve_job(model, alpha, start, settings)
        counter = ProgressCounter("solve", None, progress)
        with evaluation_hook(counter.tick):
            solution = run_quietly(job)
        counter.end(solution)
        return solution
    points = [(model, alpha, start)]
    return solve_many_broken(points, inner=inner, progress=progress, settings=settings, **changes)[
        0
    ]


@in_double_precision
def solve_many_broken(
    points: Iterable[SolveRequest],
    *,
    inner: int | None = None,
    progress: Progress = None,
    settings: SolverSettings | None = None,
    **changes: Unpack[SolverFields],
) -> list[Broken]:
    """Solve many points with one step of replica symmetry breaking.

    Parameters are those of `solve_many`, and `inner` that of `solve`.

    Examples
    --------
    >>> points = [(dp.positional_semantic(omega=0.1), 0.75, "positional")]
    >>> broken = dp.analysis.solve_many_broken(points, inner=9, log2_points=12)
    >>> broken[0].shift["train_loss"] > 0
    True
    """
    settings, inner = with_changes(settings, BREAKING, changes), _check_inner(inner)
    jobs = [
        partial(_solve_and_break, _broken_job(*point, settings), settings, inner)
        for point in _check_points(points)
    ]
    return run_all(jobs, "symmetry breaking", progress)


def _broken_job(
    model: Model, alpha: float, start: str | Overlaps, settings: SolverSettings
) -> Callable[[], Solution]:
    refuse(model, "replica symmetry breaking", "latent", "correlation")
    return _solve_job(model, alpha, start, settings)


def _solve_and_break(
    solve_symmetric: Callable[[], Solution], settings: SolverSettings, inner: int | None
) -> Broken:
    return break_symmetry(solve_symmetric(), settings, inner)


def _check_points(points: Iterable[SolveRequest]) -> list[SolveRequest]:
    rule = "must be (model, alpha, start) for each point"
    try:
        checked = list(points)
    except TypeError:
        raise InvalidInput("points", points, rule) from None
    for point in checked:
        if not isinstance(point, tuple | list) or len(point) != 3:
            raise InvalidInput("points", point, rule)
    return checked


def _check_inner(inner: int | None) -> int | None:
    return None if inner is None else validation.integer("inner", inner, at_least=4, at_most=2**14)


@in_double_precision
def complexity(
    model: Model,
    alpha: float,
    start: str | Overlaps = "semantic",
    *,
    parisi: Sequence[float] | None = None,
    inner: int | None = None,
    settings: SolverSettings | None = None,
    **changes: Unpack[SolverFields],
) -> Complexity | None:
    """Number of minima of a branch, along the Parisi parameter y.

    Parameters
    ----------
    model, alpha, start
        As for `solve`.
    parisi : sequence of float, optional
        Values of y beside those on the way from zero to the top of F; by default twice and four
        times that of the top.
    inner, settings, **changes
        As for `solve` with breaking.

    Returns
    -------
    Complexity or None
        None where there is no such branch, or its clusters of minima are points.

    Examples
    --------
    >>> model = dp.positional_semantic(omega=0.1)
    >>> curve = dp.analysis.complexity(model, 0.75, "positional", inner=9, log2_points=12)
    >>> figure = dp.plot.complexity(curve, "complexity.png")
    """
    chosen = with_changes(settings, BREAKING, changes)
    values = None
    if parisi is not None:
        values = [validation.number("parisi", y, above=0) for y in parisi]
    inner = _check_inner(inner)
    solve_symmetric = _broken_job(model, alpha, start, chosen)
    return run_quietly(lambda: count_minima(solve_symmetric(), chosen, values, inner))


@in_double_precision
def solve_many(
    points: Iterable[SolveRequest],
    *,
    progress: Progress = None,
    settings: SolverSettings | None = None,
    **changes: Unpack[SolverFields],
) -> list[Solution]:
    """Solve many points, side by side on the cores; each succeeds or fails on its own.

    Parameters
    ----------
    points : iterable of (model, alpha, start)
        As for `solve`.
    progress : bool or callable, optional
        Receives an event with each solution (`dotphase.results.ProgressEvent`).
    settings, **changes
        As for `solve`.

    Examples
    --------
    >>> model = dp.positional_semantic()
    >>> pair = dp.solve_many([(model, 2.0, "semantic"), (model, 2.0, "positional")], log2_points=12)
    >>> [solution.found for solution in pair]
    ['semantic', 'positional']
    """
    settings = with_changes(settings, DEFAULT, changes)
    jobs = [_solve_job(*point, settings) for point in _check_points(points)]
    return run_all(jobs, "solve", progress)


def continue_in_alpha(
    model: Model,
    alphas: Sequence[float],
    branches: Sequence[str] = ("semantic", "positional"),
    *,
    progress: Progress = None,
    settings: SolverSettings | None = None,
    **changes: Unpack[SolverFields],
) -> dict[str, list[Solution]]:
    """Follow branches along a grid of alpha, each point started from its neighbour.

    The grid is walked from the end at which the branch has its widest basin (a positional one
    from the smallest alpha up, the others from the largest down), and back again where the branch
    was missed; where the neighbour is not on the branch or its continuation is lost, the
    branch's own starting point is tried as well.

    Parameters
    ----------
    model : Model
        Teacher, student and data.
    alphas : sequence of float
        Sample complexities, in any order.
    branches : sequence of str
        Branches to follow, as `start` of `solve`.
    progress : bool or callable, optional
        Receives an event with each solution (`dotphase.results.ProgressEvent`).
    settings, **changes
        As for `solve`.

    Returns
    -------
    dict
        For each branch its solutions, in the order of `alphas`.

    Examples
    --------
    >>> rows = dp.analysis.continue_in_alpha(dp.positional_semantic(), [1.0, 2.0], log2_points=12)
    >>> len(rows["semantic"])
    2
    """
    settings = with_changes(settings, DEFAULT, changes)
    chains = [(model, branch) for branch in branches]
    rows = continue_many(chains, alphas, progress=progress, settings=settings)
    return dict(zip(branches, rows, strict=True))


@in_double_precision
def continue_many(
    chains: Sequence[tuple[Model, str]],
    alphas: Sequence[float],
    *,
    progress: Progress = None,
    settings: SolverSettings | None = None,
    **changes: Unpack[SolverFields],
) -> list[list[Solution]]:
    """Follow branches of many models on one grid, side by side in processes or threads.

    Parameters are those of `continue_in_alpha`; `chains` has a model and a branch for each.
    """
    settings = with_changes(settings, DEFAULT, changes)
    report = ProgressCounter("continuation", len(chains) * len(alphas), progress)
    jobs = [_continue_job(model, alphas, branch, settings, report.tick) for model, branch in chains]
    rows = {}
    if worth_it(len(chains), len(alphas)):
        rows = in_processes(chains, alphas, settings, report.tick)
    missing = [index for index in range(len(chains)) if index not in rows]
    solved = run_all([jobs[index] for index in missing], "continuation")
    rows |= zip(missing, solved, strict=True)
    return [rows[index] for index in range(len(chains))]


@in_double_precision
def solve_one(
    model: Model, alpha: float, start: str | Overlaps, settings: SolverSettings
) -> Solution:
    """`solve` without options, in the calling thread."""
    return run_quietly(_solve_job(model, alpha, start, settings))


@in_double_precision
def continue_one(
    model: Model,
    alphas: Sequence[float],
    branch: str,
    settings: SolverSettings,
    progress: Callable[[Solution], None] | None = None,
) -> list[Solution]:
    """Follow one branch along `alphas`, in the calling thread."""
    return run_quietly(_continue_job(model, alphas, branch, settings, progress))


def _solve_job(
    model: Model, alpha: float, start: str | Overlaps, settings: SolverSettings
) -> Callable[[], Solution]:
    """Check the arguments of a solve and return it, ready to run."""
    check_model(model)
    alpha = check_alpha(alpha)
    memory_check.check_points(model, 2**LOG2_BLOCK_SIZE)
    if isinstance(start, str):
        branch = _check_branch(model, start, "start")
        initial = BRANCHES[branch].initial_overlaps(model)
        if branch in ("positional", "mixed") and not np.any(np.asarray(model.gram)):
            text = f"the positions of this model are zero: it has no {branch} branch"
            warnings.warn(text, stacklevel=3)
    elif isinstance(start, Overlaps):
        branch, initial = CUSTOM, check_overlaps(model, start)
    else:
        raise InvalidInput("start", start, "must be one of " + ", ".join(BRANCHES) + " or Overlaps")
    return partial(solve_with_retries, model, alpha, branch, initial, settings)


def _continue_job(
    model: Model,
    alphas: Sequence[float],
    branch: str,
    settings: SolverSettings,
    progress: Callable[[Solution], None] | None = None,
) -> Callable[[], list[Solution]]:
    """Check the arguments of a continuation and return it, ready to run."""
    check_model(model)
    grid = [check_alpha(alpha) for alpha in alphas]
    memory_check.check_points(model, 2**LOG2_BLOCK_SIZE)
    branch = _check_branch(model, branch, "branch")
    return partial(continue_branch, model, grid, branch, settings, progress)


def _check_branch(model: Model, name: str, field: str) -> str:
    """Return the name of a branch that the model can have."""
    objection = BRANCHES[BRANCHES.check(name, field)].objection(model)
    if objection is not None:
        raise InvalidInput(field, name, objection)
    return name
