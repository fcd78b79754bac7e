"""Attention of extensive rank, as `dotphase.wide.solve`."""

from collections.abc import Mapping
from typing import Any

from dotphase.config.parameters import Integer, Number, Parameter, table
from dotphase.extensive import QUANTITIES
from dotphase.study.tasks import Result, Task, Values


def compute(parameters: Mapping[str, Any], seed: int) -> Values:
    """Return the fixed point of the state evolution; the seed is not used."""
    from dotphase.extensive.solve import solve

    solution = solve(**parameters)
    errors = {f"{name}_stderr": value for name, value in solution.stderr.items()}
    return solution.to_dict() | errors


TASK = Task(
    compute,
    table(
        Parameter("alpha", Number(above=0), help="Sentences per squared dimension n/d^2."),
        Parameter("rho", Number(above=0), help="Width of the teacher over d."),
        Parameter("ridge", Number(above=0), 0.1, "Penalty lambda."),
        Parameter("length", Integer(1, 20), 2, "Tokens in a sentence, 1 for a quadratic network."),
        Parameter("omega", Number(at_least=0, at_most=1), 0.0, "Weight of the positional part."),
    ),
    {
        **{name: Result(float, text) for name, text in QUANTITIES.items()},
        **{f"{name}_stderr": Result(float, "quadrature error") for name in QUANTITIES},
        "converged": Result(bool, "whether the iteration converged"),
    },
    takes_model=False,
)
