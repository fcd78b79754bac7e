"""Ridge regression by the solver and in closed form: one token, and identities as links."""

from collections.abc import Mapping
from typing import Any

from dotphase.config.parameters import Parameter, table
from dotphase.model.named import MODELS
from dotphase.study.tasks import Result, Task, Values
from dotphase.study.tasks._shared import ALPHA, LOG2

_MODEL = MODELS["ridge-regression"]


def compute(parameters: Mapping[str, Any], seed: int) -> Values:
    """Return the solution by the solver and in closed form."""
    from dotphase.model.glm import ridge_regression
    from dotphase.theory.solve import solve

    alpha, ridge = parameters["alpha"], parameters["ridge"]
    model = _MODEL.build(ridge=ridge)
    solution = solve(model, alpha, seed=seed, log2_points=parameters["log2_points"])
    exact = ridge_regression(alpha, ridge)
    return {
        **{name: solution.value(name) for name in exact},
        **{f"{name}_stderr": solution.stderr[name] for name in exact},
        **{f"{name}_exact": value for name, value in exact.items()},
        "converged": solution.converged,
    }


_NUMBERS = ("V", "theta", "q", "test_error", "train_loss")

TASK = Task(
    compute,
    table(
        ALPHA,
        _MODEL.parameters["ridge"],
        Parameter("log2_points", LOG2, 15, "log2 of the Gaussian points."),
    ),
    {
        **{name: Result(float, "by the solver") for name in _NUMBERS},
        **{f"{name}_stderr": Result(float, "quadrature standard error") for name in _NUMBERS},
        **{f"{name}_exact": Result(float, "in closed form") for name in _NUMBERS},
        "converged": Result(bool, "whether the solver converged"),
    },
    takes_model=False,
)
