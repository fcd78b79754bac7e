"""Solve again with other seeds where one set of Gaussian points does not determine the result.

Error bars are linear: the spread of the scrambles times the response of the fixed point. Near the
end of a branch that response is large and itself poorly known; near the detection threshold of an
alignment, the points decide whether the branch exists. There the spread over several seeds becomes
the standard error, the solution carries the range of values, and the majority of the seeds decides
whether the branch exists.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dotphase.theory.branches import BRANCHES
from dotphase.theory.classification import DETECTION_THRESHOLD, alignments
from dotphase.theory.overlaps import Overlaps
from dotphase.theory.point_evaluator import ProxWarmStart
from dotphase.theory.point_spec import PointSpec
from dotphase.theory.solution import Solution
from dotphase.theory.solve_point import SolvedPoint, solve_point
from dotphase.theory.stability import Stability

#: Number of additional seeds.
EXTRA_SEEDS = 4
#: Distance between seeds: larger than the seeds that users choose.
SEED_STRIDE = 100_003
#: Relative standard error of an overlap above which a solution is undetermined.
MAX_RELATIVE_ERROR = 0.03
#: Factor around the detection threshold within which the existence of a branch is undetermined.
THRESHOLD_FACTOR = 10.0
#: Student's t: turns the standard deviation of five values into an error that covers 68%.
STUDENT_T = 1.14


def solve_with_seeds(
    spec: PointSpec, solution: Solution, neighbor: SolvedPoint | None = None
) -> Solution:
    """Solve again with other seeds if one seed does not determine the solution.

    Newton steps from `neighbor`, the same point with its Jacobian, come first where it is given.
    The loop ends early once a majority of the seeds has found no such branch.
    """
    if not is_undetermined(solution):
        return solution
    initial = solution.overlaps
    if not solution.on_branch:
        initial = BRANCHES[spec.branch].initial_overlaps(spec.model)
    replicas: list[Solution] = []
    for number in range(1, EXTRA_SEEDS + 1):
        if nonexistence_is_certain(solution, replicas):
            break
        settings = replace(
            spec.settings.on_the_way(solution.log2_points),
            seed=spec.settings.seed + number * SEED_STRIDE,
        )
        replica = _solve_replica(replace(spec, settings=settings), initial, neighbor)
        replicas.append(replica)
    return merge_replicas(solution, replicas)


def _solve_replica(spec: PointSpec, initial: Overlaps, neighbor: SolvedPoint | None) -> Solution:
    """Solve with another seed; with damped steps, too, if the branch is missed but may exist."""
    replica = solve_point(spec, initial, ProxWarmStart(), neighbor, retry_damped=False).solution
    if replica.matches_branch or not replica.may_exist:
        return replica
    return solve_point(spec, initial, ProxWarmStart()).solution


def is_undetermined(solution: Solution) -> bool:
    """True if one set of points does not determine a solution of a named branch."""
    if solution.branch not in BRANCHES or not solution.converged or not solution.may_exist:
        return False
    vanishing = BRANCHES[solution.branch].vanishing
    names = [name for name in ("theta", "m") if name not in vanishing]
    sizes = alignments(solution.model, solution.overlaps)
    lower, upper = DETECTION_THRESHOLD / THRESHOLD_FACTOR, DETECTION_THRESHOLD * THRESHOLD_FACTOR
    if any(lower < sizes[name] < upper for name in names):
        return True
    # An error of NaN counts as large.
    is_precise = all(
        solution.stderr[name] < MAX_RELATIVE_ERROR * solution.norms[name] for name in names
    )
    return solution.on_branch and not is_precise


def nonexistence_is_certain(solution: Solution, replicas: list[Solution]) -> bool:
    """True if a majority of all planned seeds has already missed the branch."""
    missed = [one for one in _converged(solution, replicas) if not one.on_branch]
    return 2 * len(missed) > EXTRA_SEEDS + 1


def merge_replicas(solution: Solution, replicas: list[Solution]) -> Solution:
    """Combine the solutions of all seeds by majority: on the branch, or off it."""
    converged = _converged(solution, replicas)
    on_branch = [one for one in converged if one.on_branch]
    exists = 2 * len(on_branch) >= len(converged)
    majority = [one for one in converged if one.on_branch == exists]
    representative = solution if solution in majority else majority[0]
    message = representative.message
    if len(on_branch) not in (0, len(converged)):
        message += f"; the branch is found with {len(on_branch)} of {len(converged)} seeds"
    merged = replace(
        representative, message=message, stability=_merge_stability(representative, majority)
    )
    if len(majority) < 3:
        return merged
    names = (*Overlaps._fields, "train_loss", "test_error")
    values = {name: np.asarray([one.value(name) for one in majority]) for name in names}
    ranges = {name: (float(column.min()), float(column.max())) for name, column in values.items()}
    stderr = {name: STUDENT_T * float(np.std(column, ddof=1)) for name, column in values.items()}
    return replace(merged, stderr=stderr, ranges=ranges)


def _converged(solution: Solution, replicas: list[Solution]) -> list[Solution]:
    return [solution, *(replica for replica in replicas if replica.converged)]


def _merge_stability(representative: Solution, majority: list[Solution]) -> Stability:
    """The verdict; marginal if the seeds disagree about minimum or saddle."""
    verdict = representative.stability
    if len({one.stability.kind for one in majority}) == 1:
        return verdict
    reason = "minimum or saddle: other points say otherwise"
    if not verdict.trusted:
        reason += f"; {verdict.reason}"
    return replace(verdict, kind="marginal", towards=(), trusted=False, reason=reason)
