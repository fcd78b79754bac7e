"""Parameters and factory of the models of a single token."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from dotphase import model
from dotphase.config.parameters import Number, Parameter, table
from dotphase.model.named import NamedModel

#: Descriptions of the parameter `noise`.
INSIDE, ADDED = "Noise inside the teacher's sign.", "Standard deviation of the labels' noise."


def parameters(*extra: Parameter, noise: float = 0.0, help: str = ADDED) -> Mapping[str, Parameter]:
    """Table of extra parameters, scale, ridge and noise."""
    return table(
        *extra,
        Parameter("sigma", Number(above=0), 1.0, "Standard deviation of the inputs."),
        Parameter("ridge", Number(above=0), 0.01, "Penalty lambda."),
        Parameter("noise", Number(at_least=0), noise, help),
    )


def build(
    functions: Mapping[str, str],
    sigma: float,
    ridge: float,
    noise: float,
    teacher_rank: int = 1,
    student_rank: int = 1,
) -> model.Model:
    """Make a model from the names of its functions in `channels`."""
    parts = {name: getattr(model.channels, function) for name, function in functions.items()}
    return model.Model(
        parts.pop("teacher")(noise), noise=1, sigma=sigma, ridge=ridge,
        teacher_rank=teacher_rank, student_rank=student_rank, **parts,
    )  # fmt: skip


def one_token(noise_help: str, help: str, noise: float = 0.0, **functions: str) -> NamedModel:
    """Make a named model of one token from the names of its functions."""
    return NamedModel(partial(build, functions), parameters(noise=noise, help=noise_help), help)
