"""The paper's model with several heads, each with a softmax of its own, averaged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dotphase._numerics.parameters import Number, Parameter, Whole, table
from dotphase.model.named import NamedModel

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
    table(
        Parameter("omega", Number(at_least=0, at_most=1), 0.3, "Positional weight of the teacher."),
        Parameter("heads", Whole(1), 2, "Heads of teacher and student, one column each."),
        Parameter("length", Whole(2), 2, "Tokens in a sentence."),
        Parameter("sigma", Number(above=0), 0.5, "Standard deviation of the tokens."),
        Parameter("ridge", Number(above=0), 0.01, "Penalty lambda."),
    ),
    "Several heads in teacher and student, averaged.",
)  # fmt: skip
