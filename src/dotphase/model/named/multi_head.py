"""The paper's model with several heads: the mean of their softmax attentions."""

from __future__ import annotations

from typing import Any

from dotphase import model
from dotphase.config.parameters import Integer, Parameter
from dotphase.model.named import NamedModel
from dotphase.model.named._attention import build, parameters


def _build(heads: int, **others: Any) -> model.Model:
    attention = model.channels.Attention(1.0, heads=heads)
    return build(attention, attention, teacher_rank=heads, student_rank=heads, **others)


MODEL = NamedModel(
    _build,
    parameters(Parameter("heads", Integer(1), 2, "Heads of teacher and student, one column each.")),
    "Several heads in teacher and student, averaged.",
)
