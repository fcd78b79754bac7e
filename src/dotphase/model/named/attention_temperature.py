"""The paper's model with a temperature in the student's softmax, and one in the teacher's."""

from __future__ import annotations

from typing import Any

from dotphase import model
from dotphase.config.parameters import Number, Parameter
from dotphase.model.named import NamedModel
from dotphase.model.named._attention import build, parameters


def _build(beta: float, teacher_beta: float, **others: Any) -> model.Model:
    teacher, student = (model.channels.Attention(each) for each in (teacher_beta, beta))
    return build(teacher, student, **others)


MODEL = NamedModel(
    _build,
    parameters(
        Parameter("beta", Number(above=0), 1.0, "Inverse temperature of the student."),
        Parameter("teacher_beta", Number(above=0), 1.0, "Inverse temperature of the teacher."),
    ),
    "Attention with a temperature.",
)
