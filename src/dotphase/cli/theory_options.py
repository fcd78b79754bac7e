"""Options and output shared by the commands along alpha, `curve` and `compare`.

Both offer two theories: state evolution and the dynamics.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

from dotphase.cli.options import (
    ModelSpec,
    alphas_option,
    branches_option,
    json_option,
    model_options,
    option,
    out_option,
    parameter_options,
    plot_option,
    refuse_options,
    task_options,
)
from dotphase.cli.output import Files, print_json
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
#: Names of the options of state evolution.
SOLVER = ("log2_points", "rtol", "max_log2_points")


@dataclass(frozen=True)
class CurveRequest:
    """Options shared by `curve` and `compare`.

    Attributes
    ----------
    model, seed : chosen model and root seed
    alphas, branches : grid and names of branches
    theory, settings : name of the theory and its settings
    files : dataset and figure to write
    as_json : True to print JSON
    """

    model: ModelSpec
    seed: int
    alphas: list[float]
    branches: list[str]
    theory: str
    settings: dict[str, Any]
    files: Files
    as_json: bool

    def print(
        self,
        dataset: Any,
        figure: str,
        summary: Callable[[Any], dict[str, Any]],
        print_table: Callable[[Any], None],
    ) -> int:
        """Print the result, write its files and return the exit code."""
        with self.files.written_after(dataset, figure):
            if self.as_json:
                print_json(summary(dataset) | self.files.to_dict())
            else:
                print_table(dataset)
        if not self.as_json:
            self.files.echo_paths()
        return 0 if bool(dataset["converged"].all()) else 3


def curve_options(branches_help: str, dynamics: Iterable[Parameter]) -> Callable[[F], F]:
    """Add the options of `CurveRequest`, passed to the command as `request`."""
    parameters_of_dynamics = list(dynamics)

    def add(function: F) -> F:
        @alphas_option
        @branches_option(branches_help)
        @option(THEORY)
        @parameter_options(parameters_of_dynamics, "dynamics")
        @out_option
        @plot_option
        @task_options("theory", *SOLVER, rtol=1e-2, max_log2_points=14)
        @model_options
        @json_option
        @wraps(function)
        def wrapped(
            model: ModelSpec,
            seed: int,
            alphas: list[float],
            branches: list[str],
            theory: str,
            dynamics: dict[str, Any],
            parameters: dict[str, Any],
            out: str | None,
            plot: str | None,
            as_json: bool,
            **values: Any,
        ) -> Any:
            settings = _select_settings(theory, parameters, dynamics)
            request = CurveRequest(
                model, seed, alphas, branches, theory, settings, Files(out, plot), as_json
            )
            return function(request=request, **values)

        return wrapped  # type: ignore[return-value]

    return add  # fmt: skip


def _select_settings(
    theory: str, solver: dict[str, Any], dynamics: dict[str, Any]
) -> dict[str, Any]:
    """Return the options of the chosen theory; refuse options of the other."""
    if theory == "state_evolution":
        refuse_options(dynamics, "--theory state_evolution")
        return solver
    refuse_options(SOLVER, "--theory dynamics")
    changes = {name: value for name, value in dynamics.items() if name != "ensemble"}
    return {"log2_ensemble": dynamics["ensemble"], **changes}
