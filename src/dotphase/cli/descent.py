"""Options of commands that can have either theory: minima of the loss, or gradient descent."""

from __future__ import annotations

from typing import Any

from dotphase.cli.options import refuse_given
from dotphase.config.parameters import Choice, Integer, Number, Parameter

THEORY = Parameter(
    "theory", Choice(("state_evolution", "dynamics")), "state_evolution",
    "Minima of the loss, or where gradient descent ends.",
)  # fmt: skip
#: What the dynamics takes, and what state evolution does.
DYNAMICS = {
    "lr": Parameter("lr", Number(above=0), None, "Dynamics: size of a step [default: 4 or less]."),
    "steps": Parameter("steps", Integer(1), None, "Dynamics: steps to take [default: to the end]."),
    "momentum": Parameter("momentum", Number(at_least=0), 0.0, "Dynamics: share of the last step."),
    "ensemble": Parameter("ensemble", Integer(6, 24), 12, "Dynamics: log2 of the sentences."),
}
SOLVER = ("log2_points", "rtol", "max_log2_points")


def theory_options(theory: str, solver: dict[str, Any], descent: dict[str, Any]) -> dict[str, Any]:
    """The options of one of the two theories; those of the other must not be given."""
    if theory == "dynamics":
        refuse_given(SOLVER, "--theory dynamics")
        rest = {name: value for name, value in descent.items() if name != "ensemble"}
        return {"log2_ensemble": descent["ensemble"], **rest}
    refuse_given(descent, "--theory state_evolution")
    return solver
