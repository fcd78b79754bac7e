"""Survey of all branches of a model on a coarse grid of alpha."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from dotphase.model import Model
from dotphase.theory.branches import BRANCHES
from dotphase.theory.continuation import BranchContinuation, continue_branch
from dotphase.theory.settings import SolverSettings
from dotphase.theory.solution import Solution

#: One alpha of the grid, and the factor between neighbors.
GRID_ORIGIN, GRID_FACTOR = 1.0, 1.25
#: Relative distance from a grid point below which an end of the range is left out.
MIN_DISTANCE = 0.02
#: Number of alphas behind the end of a branch at which it is searched for once more.
MAX_MISSES = 3
#: Relative difference of losses below which two branches have merged.
MERGED = 1e-3


@dataclass(frozen=True)
class Survey:
    """All branches on a grid of alpha.

    Attributes
    ----------
    alphas : increasing grid
    solved : solutions of each branch; none far behind its end
    visited : the continuation of each branch before and at each of its points
    """

    alphas: tuple[float, ...]
    solved: dict[str, list[Solution]]
    visited: dict[str, list[BranchContinuation]] = field(default_factory=dict)

    def continuation(self, name: str, alpha: float, settings: SolverSettings) -> BranchContinuation:
        """Continue a branch with other settings from its point nearest to an alpha."""

        def distance(continuation: BranchContinuation) -> float:
            last = continuation.last
            return abs(math.log(last.solution.alpha / alpha)) if last else math.inf

        return min(self.visited[name], key=distance).with_settings(settings)

    def role(self, name: str) -> str:
        """Role of a branch in the range: ``not found``, ``a saddle`` or ``a minimum``."""
        points = [solution for solution in self.solved[name] if solution.on_branch]
        if not points:
            return "not found"
        return "a minimum" if any(point.is_minimum for point in points) else "a saddle"

    @property
    def lowest(self) -> list[Solution]:
        """The lowest minimum at every alpha that has one."""
        rows = [{one.alpha: one for one in row} for row in self.solved.values()]
        columns = ([row[alpha] for row in rows if alpha in row] for alpha in self.alphas)
        return [best for column in columns if (best := lowest_minimum(column)) is not None]

    def nearest_minimum(self, name: str, target: float) -> float | None:
        """The alpha nearest to a target at which a branch is certainly a minimum."""
        alphas = [
            solution.alpha
            for solution in self.solved[name]
            if solution.is_minimum and solution.stability.kind == "minimum"
        ]
        return min(alphas, key=lambda alpha: abs(math.log(alpha / target)), default=None)

    def unsettled_range(
        self, name: str, inside: float, outside: float
    ) -> tuple[float, float] | None:
        """The part of a way on which a branch may end or stop being a minimum, or None.

        Few points place a change of the branch within one step of the grid.
        """
        sign = 1 if outside > inside else -1
        way = self.solved[name][::sign]
        settled = [one.on_branch and one.stability.kind == "minimum" for one in way]
        doubtful = [
            k for k, one in enumerate(way) if sign * one.alpha > sign * inside and not settled[k]
        ]
        if not doubtful:
            return None
        first = doubtful[0]
        ends = [k for k in doubtful if not way[k].on_branch]
        ends += [k for k in doubtful if way[k].stability.kind == "saddle"]
        last = min([*ends[:1], len(way) - 1])
        start = max(first - 2, 0)
        return (
            way[start].alpha if settled[start] else inside,
            way[min(last + 1, len(way) - 1)].alpha,
        )


def survey(model: Model, alpha_min: float, alpha_max: float, settings: SolverSettings) -> Survey:
    """Follow every branch between two alphas."""
    low, high = (
        math.log(end / GRID_ORIGIN) / math.log(GRID_FACTOR) for end in (alpha_min, alpha_max)
    )
    grid = [GRID_ORIGIN * GRID_FACTOR**k for k in range(math.ceil(low), math.floor(high) + 1)]
    ends = [
        end
        for end in (alpha_min, alpha_max)
        if all(abs(end / alpha - 1) > MIN_DISTANCE for alpha in grid)
    ]
    alphas = sorted({*grid, *ends})
    visited = {
        name: [BranchContinuation(model, name, settings)] for name in possible_branches(model)
    }
    solved = {
        name: continue_branch(
            model,
            alphas,
            name,
            settings,
            seed_ensemble=False,
            max_misses=MAX_MISSES,
            visited=continuations,
        )
        for name, continuations in visited.items()
    }
    return Survey(tuple(alphas), solved, visited)


def possible_branches(model: Model) -> list[str]:
    """Branches that can be minima: the mixed one needs a student of rank two or more."""
    branches = {name: one for name, one in BRANCHES.items() if one.variant_of is None}
    return [name for name, one in branches.items() if one.vanishing or model.student_rank > 1]


def lowest_minimum(column: Sequence[Solution]) -> Solution | None:
    """The lowest minimum at one alpha; None if there is none.

    A branch that has just grown out of a simpler one has the same loss within errors. It does not
    count then.
    """
    minima = [solution for solution in column if solution.is_minimum]
    distinct = [one for one in minima if not any(has_merged(one, other) for other in minima)]
    return min(distinct, key=lambda solution: solution.free_energy, default=None)


def has_merged(solution: Solution, simpler: Solution) -> bool:
    """True if the losses cannot tell a solution from one on which more overlaps vanish."""
    is_simpler = BRANCHES[simpler.branch].vanishing > BRANCHES[solution.branch].vanishing
    return is_simpler and simpler.free_energy <= solution.free_energy * (1 + MERGED)
