"""What the models of a single token have in common: parameters, and a label that may be noisy."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from dotphase.config.parameters import Number, Parameter, table
from dotphase.model.named import NamedModel

if TYPE_CHECKING:
    from dotphase.model.definition import Model

#: What the noise of a label is.
INSIDE, ADDED = "Noise inside the teacher's sign.", "Standard deviation of the labels' noise."


def parameters(
    *others: Parameter, noise: float = 0.0, told: str = ADDED
) -> Mapping[str, Parameter]:
    """Scale, ridge and noise, after what else a model has."""
    return table(
        *others,
        Parameter("sigma", Number(above=0), 1.0, "Standard deviation of the inputs."),
        Parameter("ridge", Number(above=0), 0.01, "Penalty lambda."),
        Parameter("noise", Number(at_least=0), noise, told),
    )


def build(
    functions: Mapping[str, str],
    sigma: float,
    ridge: float,
    noise: float,
    teacher_rank: int = 1,
    student_rank: int = 1,
) -> Model:
    """The model whose teacher, loss, metric and proximal map have these names in `channels`."""
    import numpy as np

    from dotphase.model import channels
    from dotphase.model.definition import Model

    found = {name: getattr(channels, function) for name, function in functions.items()}
    teacher = found.pop("teacher")(np.asarray(noise))
    return Model(
        teacher, noise=1, sigma=sigma, ridge=ridge,
        teacher_rank=teacher_rank, student_rank=student_rank, **found,
    )  # fmt: skip


def one_token(told: str, help: str, noise: float = 0.0, **functions: str) -> NamedModel:
    """A named model of one token, from the names of its functions."""
    return NamedModel(partial(build, functions), parameters(noise=noise, told=told), help)
