"""Where a branch ends: its spinodal, or the end of the trust in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Unpack

import numpy as np

from dotphase._numerics import validate
from dotphase._numerics.precision import in_double_precision
from dotphase.model import Model
from dotphase.theory.branches import BRANCHES
from dotphase.theory.follow import Follower
from dotphase.theory.settings import SolverFields, SolverSettings, with_changes
from dotphase.theory.solution import Solution
from dotphase.theory.steps import Steps, run

#: How precisely to solve where nothing else is said.
SETTINGS = SolverSettings(log2_points=15)


@dataclass(frozen=True)
class BranchEnd:
    """Where a branch stops existing, or stops being trusted.

    Attributes
    ----------
    branch : its name
    inside, outside : alphas next to each other with and without the property
    alpha : the middle between them
    width : half their distance, the uncertainty of `alpha`

    Examples
    --------
    >>> end = dp.analysis.branch_end(
    ...     dp.positional_semantic(), "semantic", 1.2, 0.4, accuracy=0.3, log2_points=12
    ... )
    >>> end.alpha > 0.4
    True
    """

    branch: str
    inside: float
    outside: float

    @property
    def alpha(self) -> float:
        return (self.inside + self.outside) / 2

    @property
    def width(self) -> float:
        return abs(self.inside - self.outside) / 2


@in_double_precision
def branch_end(
    model: Model,
    branch: str,
    inside: float,
    outside: float,
    *,
    trusted: bool = False,
    accuracy: float = 0.01,
    settings: SolverSettings | None = None,
    **changes: Unpack[SolverFields],
) -> BranchEnd | None:
    """The end of a branch (its spinodal), or of the trust in it, between two alphas.

    Parameters
    ----------
    model : Model
        Teacher, student and data.
    branch : str
        Which branch.
    inside, outside : float
        An alpha at which the branch exists (or is trusted), and one towards which to look.
    trusted : bool
        Look for the end of trust instead: replicon reaching one, or the onset of jumps.
    accuracy : float
        Relative width at which the bisection stops.
    settings, **changes
        As for `dotphase.solve`; `log2_points` is 15 by default.

    Returns
    -------
    BranchEnd or None
        None if there is no end between the two.

    Examples
    --------
    >>> end = dp.analysis.branch_end(
    ...     dp.positional_semantic(), "semantic", 1.2, 0.4, accuracy=0.3, log2_points=12
    ... )
    >>> 0.4 < end.alpha < 1.2
    True
    """
    chosen = with_changes(settings, SETTINGS, changes)
    BRANCHES.check(branch)
    inside = validate.number("inside", inside, above=0)
    outside = validate.number("outside", outside, above=0)

    def holds(solution: Solution) -> bool:
        return solution.there and (solution.stability.trusted or not trusted)

    def look() -> Steps[BranchEnd | None]:
        good, bad = inside, outside
        follower = Follower(model, branch, chosen)
        if not holds((yield from follower.at(good))):
            return None
        # Towards the far end in steps that continuation can follow.
        for alpha in np.geomspace(inside, outside, 9)[1:]:
            if not holds((yield from follower.at(float(alpha)))):
                bad = float(alpha)
                break
            good = float(alpha)
        else:
            return None
        while abs(good - bad) > accuracy * good:
            middle = (good + bad) / 2
            follower = Follower(model, branch, chosen)
            yield from follower.at(good)
            solution = yield from follower.at(middle)
            good, bad = (middle, bad) if holds(solution) else (good, middle)
        return BranchEnd(branch, good, bad)

    return run([look()])[0]
