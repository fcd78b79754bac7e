"""Critical points: where the lowest minimum changes, and where attention beats the linear layer.

All branches that a model can have are followed along alpha, and at each alpha the lowest minimum
is found; a branch that is a saddle does not take part. Where the lowest minimum changes is a
transition. The one after which it knows the teacher is alpha_c: in the paper's model the training
losses of the semantic and the positional branch cross there. Both are solved on the same Gaussian
points, so that most of the quadrature error drops out of their difference; and the derivative of a
training loss in alpha is known exactly at a fixed point (it is the mean of the proximal minimum,
because the free energy is stationary), so that a few Newton steps find the crossing. alpha_l is
where the test error of the lowest minimum passes that of the linear positional layer. Where each
branch stops being a minimum, and ends, is looked for as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Unpack

from dotphase.config import validation
from dotphase.config.formatting import Description, format_value, format_with_model_error
from dotphase.config.serialization import fields_except
from dotphase.model import Model
from dotphase.model.definition import check_model
from dotphase.model.linear_layer import linear_test_error
from dotphase.runtime.precision import in_double_precision
from dotphase.storage.results import Result
from dotphase.theory.branch_survey import Survey, survey
from dotphase.theory.branches import BRANCHES
from dotphase.theory.driver import run_quietly
from dotphase.theory.settings import SolverFields, SolverSettings, with_changes
from dotphase.theory.solution import Solution
from dotphase.theory.spinodal import Limits, branch_limits
from dotphase.theory.transitions import (
    Transition,
    beats_linear,
    find_transitions,
    narrow_end,
)

#: Default range of the search.
ALPHA_MIN, ALPHA_MAX = 0.05, 8.0
#: log2 of the points of the survey.
SURVEY_LOG2_POINTS = 12
#: log2 of the points for brackets and for the continuation to the ends of the branches.
COARSE_LOG2_POINTS = 14
#: Default settings; all solutions need the same points.
SETTINGS = SolverSettings(log2_points=17)


@dataclass(frozen=True, eq=False, repr=False)
class Critical(Result):
    """Critical sample complexities of one model.

    Attributes
    ----------
    alpha_c, alpha_c_stderr : where the lowest minimum begins to know the teacher (theta > 0); in
        the paper's model the losses of the positional and the semantic branch cross there
    alpha_l, alpha_l_stderr : where the lowest minimum beats the linear layer in test error
    linear_test_error : test error of the linear positional layer; NaN, as alpha_l, without one
    trusted : whether the theory can be trusted for both branches at alpha_c
    message : what was found, or why not
    alpha_min, alpha_max : the range of alpha that was searched
    lowest : names of the lowest minima with rising alpha
    transitions : every change of the lowest minimum, with its error
    branches : of every branch whether it is ``a minimum`` somewhere, ``a saddle``, or ``not found``
    limits : where each branch stops being a minimum and where it ends, by its name

    Examples
    --------
    >>> found = dp.critical(dp.positional_semantic(), alpha_min=0.8, alpha_max=2.0, log2_points=12)
    >>> found.found, found.lowest
    (True, ('positional', 'semantic'))
    """

    alpha_c: float
    alpha_c_stderr: float
    alpha_l: float
    alpha_l_stderr: float
    linear_test_error: float
    trusted: bool
    message: str
    alpha_min: float
    alpha_max: float
    lowest: tuple[str, ...]
    transitions: tuple[Transition, ...]
    branches: dict[str, str]
    limits: dict[str, Limits] = field(default_factory=dict)

    @property
    def transition(self) -> Transition | None:
        """The transition at alpha_c."""
        return learning_transition(self.transitions)

    def side(self, name: str) -> Solution | None:
        """The solution of a branch at alpha_c, where two losses cross there."""
        transition = self.transition
        if transition is None or transition.kind != "crossing":
            return None
        below, above = transition.sides
        return {transition.before: below, transition.after: above}.get(name)

    @property
    def semantic(self) -> Solution | None:
        """The semantic solution at alpha_c, if it takes part in a crossing there."""
        return self.side("semantic")

    @property
    def positional(self) -> Solution | None:
        """The positional solution at alpha_c, if it takes part in a crossing there."""
        return self.side("positional")

    @property
    def crosses(self) -> bool:
        """True if positional and semantic losses cross at alpha_c, as in the paper's model."""
        return self.found and self.semantic is not None and self.positional is not None

    @property
    def alpha_c_model_error(self) -> float:
        """Shift of alpha_c by replica symmetry breaking; NaN where no losses cross.

        It is the larger model error of the two losses over the difference of their slopes.
        """
        return math.nan if self.transition is None else self.transition.model_error

    @property
    def stability_loss(self) -> dict[str, float]:
        """The alpha at which each branch stops being a minimum; NaN where there is none."""
        return {name: limits.stability_loss for name, limits in self.limits.items()}

    @property
    def branch_end(self) -> dict[str, float]:
        """The alpha at which each branch ends; NaN where there is none."""
        return {name: limits.end for name, limits in self.limits.items()}

    @property
    def found(self) -> bool:
        """True if one of the critical points exists in the range that was searched."""
        return math.isfinite(self.alpha_c) or math.isfinite(self.alpha_l)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings, ready for JSON."""
        errors = {
            "stability_loss_stderr": {k: v.stability_loss_stderr for k, v in self.limits.items()},
            "branch_end_stderr": {k: v.end_stderr for k, v in self.limits.items()},
        }
        return {
            **fields_except(self, "limits"),
            "transitions": [one.to_dict() for one in self.transitions],
            "alpha_c_model_error": self.alpha_c_model_error,
            "stability_loss": self.stability_loss,
            "branch_end": self.branch_end,
            **errors,
        }

    @property
    def description(self) -> Description:
        """Phases, transitions and critical points with their errors."""
        span = f"for alpha from {self.alpha_min:g} to {self.alpha_max:g}"
        phases = ", then ".join(self.lowest) or "none"
        doubt = " ?" if self.transition is not None and not self.trusted else ""
        position = format_with_model_error(
            self.alpha_c, self.alpha_c_stderr, self.alpha_c_model_error
        )
        rows = [
            ("alpha_c", position + doubt),
            ("alpha_l", format_value(self.alpha_l, self.alpha_l_stderr)),
        ]
        rows += [("transition", str(one)) for one in self.transitions]
        for name, role in self.branches.items():
            text = role
            if role == "a minimum" and name in self.limits:
                text += _describe_limits(name, self.limits[name])
            rows.append((f"{name} branch", text))
        if math.isfinite(self.linear_test_error):
            rows.append(("linear layer", f"test error {self.linear_test_error:.6g}"))
        verdict = "trusted" if self.trusted else "NOT TRUSTED" if self.transition else "no alpha_c"
        head = f"lowest minimum {span}: {phases}"
        return Description(head, tuple(rows), (f"{verdict}: {self.message}",))


def _describe_limits(name: str, limits: Limits) -> str:
    """The limits of a branch as text."""
    side = "up to" if narrow_end(name, 0.0, 1.0) == 1.0 else "from"
    text = ""
    if math.isfinite(limits.stability_loss):
        loss = format_value(limits.stability_loss, limits.stability_loss_stderr)
        text += f" {side} alpha = {loss}"
    if math.isfinite(limits.end):
        end = format_value(limits.end, limits.end_stderr)
        text += f", ends at alpha = {end} ({limits.end_kind})"
    return text or ", no end found"


def learning_transition(transitions: Iterable[Transition]) -> Transition | None:
    """The last transition to a minimum aligned with the teacher from one that is not."""

    def is_aligned(name: str) -> bool:
        return "theta" not in BRANCHES[name].vanishing

    learning = [one for one in transitions if is_aligned(one.after) and not is_aligned(one.before)]
    return learning[-1] if learning else None


@in_double_precision
def critical(
    model: Model,
    *,
    alpha_min: float = ALPHA_MIN,
    alpha_max: float = ALPHA_MAX,
    limits: bool = True,
    settings: SolverSettings | None = None,
    **changes: Unpack[SolverFields],
) -> Critical:
    """The critical points of a model.

    Parameters
    ----------
    model : Model
        Teacher, student and data.
    alpha_min, alpha_max : float
        Range of alpha to search; every transition in it is found.
    limits : bool
        Whether to look for where each branch stops being a minimum and where it ends, too.
    settings, **changes
        As for `dotphase.solve`; `log2_points`, 17 by default, has to be fixed.

    Examples
    --------
    >>> found = dp.critical(dp.positional_semantic(), alpha_min=0.8, alpha_max=2.0, log2_points=12)
    >>> 1.1 < found.alpha_c < 1.4
    True
    """
    check_model(model)
    settings = with_changes(settings, SETTINGS, changes)
    return run_quietly(search_job(model, alpha_min, alpha_max, limits, settings))


def search_job(
    model: Model, alpha_min: float, alpha_max: float, limits: bool, settings: SolverSettings
) -> Callable[[], Critical]:
    """Check the arguments and return the search, ready to run."""
    alpha_min = validation.number("alpha_min", alpha_min, above=0)
    alpha_max = validation.number("alpha_max", alpha_max, above=alpha_min)
    return partial(_search, model, alpha_min, alpha_max, limits, settings.fixed_points, settings)


def _search(
    model: Model,
    alpha_min: float,
    alpha_max: float,
    limits: bool,
    log2_points: int,
    settings: SolverSettings,
) -> Critical:
    """Survey the branches, locate the transitions, then the limits of the branches."""
    survey_settings = replace(settings, log2_points=min(SURVEY_LOG2_POINTS, log2_points))
    coarse = replace(settings, log2_points=min(COARSE_LOG2_POINTS, log2_points))
    branches = survey(model, alpha_min, alpha_max, survey_settings)
    transitions = find_transitions(branches, coarse, settings)
    linear = linear_test_error(model, seed=settings.seed)
    linear_crossing = beats_linear(branches, transitions, linear, coarse, settings)
    learning = learning_transition(transitions)
    lowest = [one.before for one in transitions[:1]] + [one.after for one in transitions]
    if not transitions:
        lowest = [solution.branch for solution in branches.lowest[:1]]
    reason = learning.reason if learning else _why_not(lowest, alpha_min, alpha_max)
    result = Critical(
        alpha_c=learning.alpha if learning else math.nan,
        alpha_c_stderr=learning.stderr if learning else math.nan,
        alpha_l=linear_crossing.alpha,
        alpha_l_stderr=linear_crossing.stderr,
        linear_test_error=linear,
        trusted=learning is not None and learning.trusted,
        message=f"{reason}; {linear_crossing.message}",
        alpha_min=alpha_min,
        alpha_max=alpha_max,
        lowest=tuple(lowest),
        transitions=tuple(transitions),
        branches={name: branches.role(name) for name in branches.solved},
    )
    if limits:
        result = replace(result, limits=_limits(branches, result, coarse, settings))
    return result


def _limits(
    branches: Survey, result: Critical, coarse: SolverSettings, settings: SolverSettings
) -> dict[str, Limits]:
    """The limits of every branch that is a minimum somewhere."""
    limits = {name: Limits() for name in ("semantic", "positional")}
    start = partial(branches.continuation, settings=coarse)
    born = {one.after: one for one in result.transitions if one.kind == "continuous"}
    for name in branches.solved:
        outside = narrow_end(name, result.alpha_min, result.alpha_max)
        if name in born and outside == result.alpha_min:
            birth = born[name]
            kind = f"merges with {birth.before}"
            limits[name] = Limits(end=birth.alpha, end_stderr=birth.stderr, end_kind=kind)
            continue
        crosses = result.side(name) is not None
        inside = result.alpha_c if crosses else branches.nearest_minimum(name, outside)
        ends = None if inside is None else branches.unsettled_range(name, inside, outside)
        if ends is not None:
            limits[name] = branch_limits(start, name, *ends, settings)
    return limits


def _why_not(lowest: list[str], alpha_min: float, alpha_max: float) -> str:
    """Why there is no alpha_c."""
    span = f"in [{alpha_min:g}, {alpha_max:g}]"
    if not lowest:
        return f"no minimum was found {span}"
    if len(lowest) == 1:
        return f"the {lowest[0]} branch is the lowest minimum at every alpha {span}"
    return f"the lowest minimum changes {span}, but never to one aligned with the teacher"
