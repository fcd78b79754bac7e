"""Options and output shared by the commands along alpha, `curve` and `compare`.

Both offer state evolution and the dynamics, and `compare` one pass.
"""

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, TypeVar

import click

from dotphase.cli.options import (
    DistinctValues,
    alphas_option,
    option,
    parameter_options,
    refuse_options,
    task_options,
)
from dotphase.cli.request import request_options
from dotphase.config.parameters import Choice, Integer, Number, Parameter

F = TypeVar("F", bound=Callable[..., Any])

THEORY = Parameter(
    "theory", Choice(("state_evolution", "dynamics")), "state_evolution",
    "Minima of the training loss, or the end of gradient descent.",
)  # fmt: skip
#: Options of the dynamics, by name.
DYNAMICS = {
    "lr": Parameter("lr", Number(above=0), None, "Dynamics: step size [default: at most 4]."),
    "steps": Parameter("steps", Integer(1), None,
                       "Dynamics: number of steps [default: until convergence]."),
    "momentum": Parameter("momentum", Number(at_least=0), 0.0, "Dynamics: momentum coefficient."),
    "ensemble": Parameter("ensemble", Integer(6, 24), 12, "Dynamics: log2 of the sentences."),
}  # fmt: skip
BRANCHES = Choice("dotphase.theory.branches:BRANCHES")
#: Names of the options of state evolution.
SOLVER = ("log2_points", "rtol", "max_log2_points")


def curve_options(
    branches_help: str,
    dynamics: Iterable[Parameter],
    theory: Parameter = THEORY,
    names: Choice = BRANCHES,
) -> Callable[[F], F]:
    """Add the options of a curve, passed to the command as `arguments` of `dp.curve` and `request`.

    The arguments are alphas, branches, theory and its settings.
    """
    parameters_of_dynamics = list(dynamics)

    def add(function: F) -> F:
        @alphas_option
        @click.option(
            "--branches",
            type=DistinctValues(names),
            default="semantic,positional",
            help=branches_help,
        )
        @option(theory)
        @parameter_options(parameters_of_dynamics, "dynamics")
        @task_options("theory", *SOLVER, rtol=1e-2, max_log2_points=14)
        @request_options
        @wraps(function)
        def wrapped(
            alphas: list[float],
            branches: list[str],
            theory: str,
            dynamics: dict[str, Any],
            parameters: dict[str, Any],
            **values: Any,
        ) -> Any:
            settings = _select_settings(theory, parameters, dynamics)
            grid = {"alphas": alphas, "branches": branches, "theory": theory}
            return function(arguments=grid | settings, **values)

        return wrapped  # type: ignore[return-value]

    return add  # fmt: skip


def _select_settings(
    theory: str, solver: dict[str, Any], dynamics: dict[str, Any]
) -> dict[str, Any]:
    """Return the options of the chosen theory; refuse options of the other."""
    if theory == "state_evolution":
        refuse_options(dynamics, "--theory state_evolution")
        return solver
    refuse_options(SOLVER, f"--theory {theory}")
    if theory == "one_pass":
        refuse_options([name for name in dynamics if name != "lr"], "--theory one_pass")
        return {"lr": dynamics["lr"]}
    changes = {name: value for name, value in dynamics.items() if name != "ensemble"}
    return {"log2_ensemble": dynamics["ensemble"], **changes}
