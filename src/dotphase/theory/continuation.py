"""Follow a branch of fixed points in alpha."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from itertools import pairwise

import numpy as np

from dotphase.model import Model
from dotphase.model.linear_layer import linear_test_error
from dotphase.theory.arclength import ArclengthContinuation
from dotphase.theory.branches import BRANCHES
from dotphase.theory.fixed_point_map import StateEvolutionMap
from dotphase.theory.point_evaluator import PointEvaluator, ProxWarmStart
from dotphase.theory.point_spec import PointSpec
from dotphase.theory.seed_ensemble import solve_with_seeds
from dotphase.theory.settings import SolverSettings
from dotphase.theory.solution import Solution
from dotphase.theory.solve_point import SolvedPoint, solve_point

#: Factor of alpha between a point and the distant alpha from which a missed branch is approached.
APPROACH_FACTOR = 2.5
#: Number of alphas on that way.
APPROACH_STEPS = 8


class BranchContinuation:
    """A branch in alpha, each point solved from its neighbor.

    Where the last point was not on the branch, or the continuation leaves the branch, the
    branch's own initialization is tried as well.

    Parameters
    ----------
    seed_ensemble : bool
        Whether to solve with other seeds, too, the points that one set of Gaussian points does not
        determine.
    """

    def __init__(
        self, model: Model, branch: str, settings: SolverSettings, *, seed_ensemble: bool = False
    ) -> None:
        self.model, self.settings, self.seed_ensemble = model, settings, seed_ensemble
        self.branch = BRANCHES.check(branch)
        self._initial = BRANCHES[branch].initial_overlaps(model)
        self._linear_test_error: float | None = None
        self._warm_start = ProxWarmStart()
        self._last: SolvedPoint | None = None
        self._has_ended = False

    @property
    def last(self) -> SolvedPoint | None:
        """The last point, if it is on the branch."""
        return self._last

    def with_settings(self, settings: SolverSettings) -> BranchContinuation:
        """A copy at the same point, which solves its neighbors with other settings."""
        changed = copy(self)
        changed.settings = settings
        if settings.seed != self.settings.seed:
            changed._warm_start = ProxWarmStart()
        return changed

    def solve_at(self, alpha: float) -> Solution:
        """Solve at another alpha."""
        point = None
        if self._last is not None:
            point = self._solve_from_last(alpha)
        if point is None or not point.solution.on_branch:
            retry_damped = not self._has_ended and (point is None or point.solution.may_exist)
            self._warm_start = ProxWarmStart()
            fresh = solve_point(
                self._spec(alpha), self._initial, self._warm_start, retry_damped=retry_damped
            )
            point = fresh if point is None or fresh.solution.matches_branch else point
        self._keep(point)
        if self.seed_ensemble:
            return solve_with_seeds(self._spec(alpha), point.solution, self._last)
        return point.solution

    def trial_step(self, alpha: float) -> tuple[Solution, BranchContinuation]:
        """Solve at a nearby alpha from the last point alone.

        Returns the solution and a continuation at that point; this one does not move.
        """
        advanced = copy(self)
        return advanced._keep(advanced._solve_from_last(alpha)), advanced

    def approach(self, alpha: float, *, minimum: bool = False) -> Solution | None:
        """Follow the branch to alpha from a distance, where its basin is wide.

        Returns None if the branch is lost on the way. With `minimum`, a saddle counts as lost at
        both ends of the way.
        """
        upwards = BRANCHES[self.branch].continue_upwards
        distant = alpha / APPROACH_FACTOR if upwards else alpha * APPROACH_FACTOR
        solution = self.solve_at(distant)
        if minimum and solution.stability.kind == "saddle":
            return None
        for step in map(float, np.geomspace(distant, alpha, APPROACH_STEPS)[1:]):
            if not solution.on_branch:
                return None
            solution = self._keep(self._solve_from_last(step))
        is_lost = not solution.on_branch or (minimum and solution.stability.kind == "saddle")
        return None if is_lost else solution

    def arclength(self, direction: float) -> ArclengthContinuation:
        """The branch as a curve from the last point, which may turn around in alpha."""
        assert self._last is not None and self._last.jacobian is not None
        solution, jacobian = self._last.solution, self._last.jacobian
        fixed_point_map = StateEvolutionMap.from_initial(
            self.model, solution.alpha, solution.overlaps
        )
        evaluator = PointEvaluator(fixed_point_map, self.settings, self._warm_start)
        x = fixed_point_map.coordinates.pack(solution.overlaps)
        return ArclengthContinuation(evaluator, x, jacobian, solution.log2_points, direction)

    def _spec(self, alpha: float) -> PointSpec:
        if self._linear_test_error is None:
            self._linear_test_error = linear_test_error(self.model, seed=self.settings.seed)
        return PointSpec(self.model, alpha, self.branch, self.settings, self._linear_test_error)

    def _solve_from_last(self, alpha: float) -> SolvedPoint:
        assert self._last is not None
        last, self._warm_start = self._last, self._warm_start.for_neighbor()
        spec, initial = self._spec(alpha), last.solution.overlaps
        return solve_point(spec, initial, self._warm_start, last, retry_damped=False)

    def _keep(self, point: SolvedPoint) -> Solution:
        self._last = point if point.solution.on_branch else None
        self._has_ended = not point.solution.matches_branch
        return point.solution


def continue_branch(
    model: Model,
    alphas: Sequence[float],
    branch: str,
    settings: SolverSettings,
    progress: Callable[[Solution], None] | None = None,
    *,
    seed_ensemble: bool = True,
    max_misses: int | None = None,
    visited: list[BranchContinuation] | None = None,
) -> list[Solution]:
    """Solve a branch on a grid of alpha; solutions are in the order of `alphas`.

    The grid is followed from the end where the branch's basin is widest, and back again where the
    branch was missed. After `max_misses` misses behind the branch, the rest of the grid is left
    out. Copies of the continuation at the points on the branch are added to `visited`.
    """
    continuation = BranchContinuation(model, branch, settings, seed_ensemble=seed_ensemble)
    order = list(map(int, np.argsort(alphas)[:: 1 if BRANCHES[branch].continue_upwards else -1]))
    solutions: dict[int, Solution] = {}
    last_found: int | None = None
    for number, index in enumerate(order):
        if max_misses and last_found is not None and number - last_found > max_misses:
            break
        solutions[index] = continuation.solve_at(alphas[index])
        if solutions[index].on_branch:
            last_found = number
            if visited is not None:
                visited.append(copy(continuation))
        if progress is not None:
            progress(solutions[index])
    # The branch's own initialization may have missed the branch where it exists.
    for solved, missed in pairwise([index for index in order[::-1] if index in solutions]):
        if solutions[solved].on_branch and not solutions[missed].on_branch:
            backwards = BranchContinuation(model, branch, settings, seed_ensemble=seed_ensemble)
            backwards.solve_at(alphas[solved])
            solution = backwards.solve_at(alphas[missed])
            if solution.on_branch:
                solutions[missed] = solution
    return [solutions[index] for index in range(len(alphas)) if index in solutions]
