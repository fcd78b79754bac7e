"""Asking again with other seeds where one set of points does not determine the answer.

Error bars are linear: they take the spread of the scrambles times the response of the fixed
point to it. Next to the end of a branch that response is large and itself poorly known, and where
an alignment is close to `PRESENT`, whether the branch exists depends on the points. There the
point is solved again with other seeds: their spread becomes the standard error, the result says
that it is not determined and gives the range, and the majority decides whether the branch exists.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dotphase.theory.branches import BRANCHES
from dotphase.theory.classification import PRESENT, alignment
from dotphase.theory.overlaps import Overlaps
from dotphase.theory.solution import Solution
from dotphase.theory.stability import Stability

#: How many other seeds are asked, and the distance between them: far from those of a user.
OTHERS, APART = 4, 100_003
#: Relative standard error of an overlap above which other seeds are asked.
LARGE = 0.03
#: Factor around `PRESENT` within which they are asked whether a branch exists.
CLOSE = 10.0
#: Turns the standard deviation of five values into an error that covers 68% (Student's t).
FEW = 1.14


def needs_seeds(solution: Solution) -> bool:
    """Whether one set of points does not determine a solution of a known branch."""
    branch = BRANCHES.get(solution.branch) if solution.branch in BRANCHES else None
    if branch is None or not solution.converged:
        return False
    names = [name for name in ("theta", "m") if name not in branch.vanishing]
    sizes = dict(zip(("theta", "m"), alignment(solution.model, solution.overlaps), strict=True))
    if any(PRESENT / CLOSE < sizes[name] < PRESENT * CLOSE for name in names):
        return True
    if not solution.matches_branch:
        return False
    norms = solution.norms
    return any(not solution.stderr[name] < LARGE * norms[name] for name in names)


def decided_against(solution: Solution, others: list[Solution]) -> bool:
    """Whether those asked so far outvote those still to come: there is no such branch."""
    every = [solution, *(other for other in others if other.converged)]
    off = sum(not one.matches_branch for one in every)
    return 2 * off > OTHERS + 1


def combined(solution: Solution, others: list[Solution]) -> Solution:
    """A solution with what other seeds say of it: the majority on the branch or off it counts."""
    every = [solution, *(other for other in others if other.converged)]
    on = [one for one in every if one.matches_branch]
    exists = 2 * len(on) >= len(every)
    agreeing = on if exists else [one for one in every if not one.matches_branch]
    chosen = solution if solution in agreeing else agreeing[0]
    names = (*Overlaps._fields, "train_loss", "test_error")
    values = {name: np.asarray([one.value(name) for one in agreeing]) for name in names}
    message = chosen.message
    if len(on) not in (0, len(every)):
        message += f"; the branch is found with {len(on)} of {len(every)} seeds"
    chosen = replace(chosen, message=message, stability=_of_one_mind(chosen, agreeing))
    if len(agreeing) < 3:
        return chosen
    ranges = {name: (float(some.min()), float(some.max())) for name, some in values.items()}
    errors = {name: FEW * float(np.std(some, ddof=1)) for name, some in values.items()}
    return replace(chosen, stderr=errors, ranges=ranges)


def _of_one_mind(chosen: Solution, agreeing: list[Solution]) -> Stability:
    """The verdict; where other seeds have another kind of point, it cannot be told which."""
    verdict = chosen.stability
    kinds = {one.stability.kind for one in agreeing}
    if len(kinds) == 1:
        return verdict
    reason = "minimum or saddle: other points say otherwise"
    if not verdict.trusted:
        reason += f"; {verdict.reason}"
    return replace(verdict, kind="marginal", towards=(), trusted=False, reason=reason)
