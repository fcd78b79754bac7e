"""Deep attention: several layers of tied attention with skip connections."""

from __future__ import annotations

from typing import Any

from dotphase import model
from dotphase.config.parameters import Choice, Integer, Number, Parameter, table
from dotphase.model.named import NamedModel


def _build(
    layers: int, skip: float, output: str, omega: float, length: int, **others: Any
) -> model.Model:
    product = output == "product"
    attention = model.deep.DeepAttention(skip, product)
    # Rows of the positional part have the sums of the other part.
    mixing = model.paper.kind_mixing(length) * ((1 + skip) ** layers if product else 1.0)
    return model.Model(
        model.channels.Mixture(attention, omega, mixing) if omega else attention, attention,
        length=length, teacher_rank=layers, student_rank=layers,
        positions=model.paper.kind_positions(length), **others,
    )  # fmt: skip


MODEL = NamedModel(
    _build,
    table(
        Parameter("layers", Integer(2), 2, "Layers of teacher and student, one column each."),
        Parameter("skip", Number(at_least=0), 1.0, "Strength of the skip connections."),
        Parameter("output", Choice(("last", "product")), "last",
                  "Attention of the last layer, or the product of all layers."),
        Parameter("omega", Number(at_least=0, at_most=1), 0.0,
                  "Positional weight of the teacher."),
        Parameter("length", Integer(2), 2, "Tokens in a sentence."),
        Parameter("sigma", Number(above=0), 1.0, "Standard deviation of the tokens."),
        Parameter("ridge", Number(above=0), 0.01, "Penalty lambda."),
    ),
    "Layers of attention with skip connections.",
)  # fmt: skip
