"""The paper's model with a temperature in the student's softmax, and one in the teacher's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dotphase.config.parameters import Number, Parameter
from dotphase.model.named import NamedModel
from dotphase.model.named._attention import parameters

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
    parameters(
        Parameter("beta", Number(above=0), 1.0, "Inverse temperature of the student."),
        Parameter("teacher_beta", Number(above=0), 1.0, "Inverse temperature of the teacher."),
    ),
    "Attention with a temperature.",
)  # fmt: skip
