"""The paper's model with a temperature in the student's softmax, and one in the teacher's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dotphase._numerics.parameters import Number, Parameter, Whole, table
from dotphase.model.named import NamedModel

if TYPE_CHECKING:
    from dotphase.model.definition import Model


def _build(
    omega: float, beta: float, teacher_beta: float, length: int, sigma: float, ridge: float
) -> Model:
    import numpy as np

    from dotphase.model.channels import Attention, Mixture
    from dotphase.model.definition import Model
    from dotphase.model.paper import kind_mixing, kind_positions

    teacher = Attention(np.asarray(teacher_beta))
    return Model(
        Mixture(teacher, np.asarray(omega), kind_mixing(length)), Attention(np.asarray(beta)),
        length=length, sigma=sigma, positions=kind_positions(length), ridge=ridge,
    )  # fmt: skip


MODEL = NamedModel(
    _build,
    table(
        Parameter("omega", Number(at_least=0, at_most=1), 0.3, "Positional weight of the teacher."),
        Parameter("beta", Number(above=0), 1.0, "Inverse temperature of the student."),
        Parameter("teacher_beta", Number(above=0), 1.0, "Inverse temperature of the teacher."),
        Parameter("length", Whole(2), 2, "Tokens in a sentence."),
        Parameter("sigma", Number(above=0), 0.5, "Standard deviation of the tokens."),
        Parameter("ridge", Number(above=0), 0.01, "Penalty lambda."),
    ),
    "Attention with a temperature.",
)  # fmt: skip
