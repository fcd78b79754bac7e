"""The paper's model with several heads: the mean of their softmax attentions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dotphase.config.parameters import Integer, Parameter
from dotphase.model.named import NamedModel
from dotphase.model.named._attention import parameters

if TYPE_CHECKING:
    from dotphase.model.definition import Model


def _build(omega: float, heads: int, length: int, sigma: float, ridge: float) -> Model:
    import numpy as np

    from dotphase.model.channels import Attention, Mixture
    from dotphase.model.definition import Model
    from dotphase.model.paper import kind_mixing, kind_positions

    attention = Attention(np.asarray(1.0), heads=heads)
    return Model(
        Mixture(attention, np.asarray(omega), kind_mixing(length)), attention, length=length,
        teacher_rank=heads, student_rank=heads, sigma=sigma, positions=kind_positions(length),
        ridge=ridge,
    )  # fmt: skip


MODEL = NamedModel(
    _build,
    parameters(
        Parameter("heads", Integer(1), 2, "Heads of teacher and student, one column each."),
    ),
    "Several heads in teacher and student, averaged.",
)  # fmt: skip
