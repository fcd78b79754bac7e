"""Solving state evolution: one point, many, or branches along alpha.

Each solve is a generator of queries (`dotphase.theory.driver`), so that the same code serves a
single point and a batch; `solving` and `continuing` give it to callers who run it themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, Unpack, overload

from dotphase.config import validation
from dotphase.errors import InvalidInput
from dotphase.model import memory_check
from dotphase.model.definition import Model, check_model, refuse
from dotphase.numerics.quadrature import BLOCK_LOG2
from dotphase.runtime.precision import in_double_precision
from dotphase.theory.branch_processes import in_processes, worth_it
from dotphase.theory.branches import BRANCHES
from dotphase.theory.classification import CUSTOM
from dotphase.theory.continuation import along, one_point
from dotphase.theory.driver import Steps, run
from dotphase.theory.one_rsb.result import Broken, Complexity
from dotphase.theory.one_rsb.solve import breaking as breaking_in_steps
from dotphase.theory.one_rsb.solve import counting
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

#: A point to be solved: the model, alpha, and the branch or the overlaps to start from.
Problem = tuple[Model, float, str | Overlaps]


@overload
def solve(
    model: Model,
    alpha: float,
    start: str | Overlaps = "semantic",
    *,
    breaking: Literal[0] = 0,
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
    settings : SolverSettings, optional
        How precisely to solve.
    **changes
        Fields of the settings by name: `rtol`, `log2_points`, `max_log2_points`, `seed`,
        `iteration`;
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
        settings = with_changes(settings, DEFAULT, changes)
        return run([solving(model, alpha, start, settings)])[0]
    broken = solve_many_broken([(model, alpha, start)], inner=inner, settings=settings, **changes)
    return broken[0]


@in_double_precision
def solve_many_broken(
    problems: Iterable[Problem],
    *,
    inner: int | None = None,
    lanes: int | None = None,
    progress: Callable[[Broken], None] | None = None,
    settings: SolverSettings | None = None,
    **changes: Unpack[SolverFields],
) -> list[Broken]:
    """Solve many points with one step of replica symmetry breaking.

    Parameters are those of `solve_many`, and `inner` that of `solve`.

    Examples
    --------
    >>> points = [(dp.positional_semantic(omega=0.1), 0.75, "positional")]
    >>> found = dp.analysis.solve_many_broken(points, inner=9, log2_points=12)
    >>> found[0].shift["train_loss"] > 0
    True
    """
    chosen = with_changes(settings, BREAKING, changes)
    inner = _check_inner(inner)
    work = [
        breaking_in_steps(solving(_independent(model), alpha, start, chosen), chosen, inner)
        for model, alpha, start in _triples(problems)
    ]
    return run(work, lanes=lanes, progress=progress)


def _triples(problems: Iterable[Problem]) -> list[Problem]:
    """What is to be solved, or `InvalidInput`."""
    rule = "must be (model, alpha, start) for each point"
    try:
        given = list(problems)
    except TypeError:
        raise InvalidInput("problems", problems, rule) from None
    for problem in given:
        if not isinstance(problem, tuple | list) or len(problem) != 3:
            raise InvalidInput("problems", problem, rule)
    return given


def _independent(model: Model) -> Model:
    refuse(model, "replica symmetry breaking", "latent", "correlation")
    return model


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
    """How many minima a branch has, along the Parisi parameter y.

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
    return run(
        [counting(solving(_independent(model), alpha, start, chosen), chosen, values, inner)]
    )[0]


@in_double_precision
def solve_many(
    problems: Iterable[Problem],
    *,
    lanes: int | None = None,
    progress: Callable[[Solution], None] | None = None,
    settings: SolverSettings | None = None,
    **changes: Unpack[SolverFields],
) -> list[Solution]:
    """Solve many points; each succeeds or fails on its own.

    Parameters
    ----------
    problems : iterable of (model, alpha, start)
        As for `solve`.
    lanes : int, optional
        Points per vmapped call. By default 1 on a CPU, where independent points are spread
        over threads instead (measured to be faster), and 16 on an accelerator.
    progress : callable, optional
        Called with each solution as it is finished.
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
    work = [solving(*problem, settings) for problem in _triples(problems)]
    return run(work, lanes=lanes, progress=progress)


def continue_in_alpha(
    model: Model,
    alphas: Sequence[float],
    branches: Sequence[str] = ("semantic", "positional"),
    *,
    progress: Callable[[Solution], None] | None = None,
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
    progress : callable, optional
        Called with each solution as it is finished.
    settings, **changes
        As for `solve`.

    Returns
    -------
    dict
        For each branch its solutions, in the order of `alphas`.

    Examples
    --------
    >>> found = dp.analysis.continue_in_alpha(dp.positional_semantic(), [1.0, 2.0], log2_points=12)
    >>> len(found["semantic"])
    2
    """
    settings = with_changes(settings, DEFAULT, changes)
    chains = [(model, branch) for branch in branches]
    found = continue_many(chains, alphas, progress=progress, settings=settings)
    return dict(zip(branches, found, strict=True))


@in_double_precision
def continue_many(
    chains: Sequence[tuple[Model, str]],
    alphas: Sequence[float],
    *,
    progress: Callable[[Solution], None] | None = None,
    settings: SolverSettings | None = None,
    **changes: Unpack[SolverFields],
) -> list[list[Solution]]:
    """`continue_in_alpha` for branches of many models on one grid, which run side by side: in
    processes where there are many of them, else in threads."""
    settings = with_changes(settings, DEFAULT, changes)
    work = [continuing(model, alphas, branch, settings, progress) for model, branch in chains]
    found = {}
    if worth_it(len(chains), len(alphas)):
        found = in_processes(chains, alphas, settings, progress)
    left = [place for place in range(len(chains)) if place not in found]
    found |= zip(left, run([work[place] for place in left]), strict=True)
    return [found[place] for place in range(len(chains))]


def solving(
    model: Model, alpha: float, start: str | Overlaps, settings: SolverSettings
) -> Steps[Solution]:
    """`solve` in steps, for a caller who runs them. What is asked is checked here, before."""
    check_model(model)
    alpha = check_alpha(alpha)
    memory_check.check_points(model, 2**BLOCK_LOG2)
    if isinstance(start, str):
        branch = BRANCHES.check(start, "start")
        return one_point(model, alpha, branch, BRANCHES[branch].start(model), settings)
    if isinstance(start, Overlaps):
        return one_point(model, alpha, CUSTOM, check_overlaps(model, start), settings)
    raise InvalidInput("start", start, "must be one of " + ", ".join(BRANCHES) + " or Overlaps")


def continuing(
    model: Model,
    alphas: Sequence[float],
    branch: str,
    settings: SolverSettings,
    progress: Callable[[Solution], None] | None = None,
) -> Steps[list[Solution]]:
    """A branch along `alphas` in steps, as `solving`."""
    check_model(model)
    grid = [check_alpha(alpha) for alpha in alphas]
    memory_check.check_points(model, 2**BLOCK_LOG2)
    return along(model, grid, BRANCHES.check(branch), settings, progress)
