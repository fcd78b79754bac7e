"""Options of commands that offer two theories: state evolution and the dynamics."""

from __future__ import annotations

from typing import Any

from dotphase.cli.options import refuse_options
from dotphase.config.parameters import Choice, Integer, Number, Parameter

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


def select_options(theory: str, solver: dict[str, Any], dynamics: dict[str, Any]) -> dict[str, Any]:
    """Return the options of the chosen theory; refuse options of the other."""
    if theory == "state_evolution":
        refuse_options(dynamics, "--theory state_evolution")
        return solver
    refuse_options(SOLVER, "--theory dynamics")
    changes = {name: value for name, value in dynamics.items() if name != "ensemble"}
    return {"log2_ensemble": dynamics["ensemble"], **changes}
