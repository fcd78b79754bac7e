"""Attention that is learned from choices: every token draws another one from the teacher's row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dotphase._numerics.parameters import Number, Parameter, Whole, table
from dotphase.model.named import NamedModel

if TYPE_CHECKING:
    from dotphase.model.definition import Model


def _build(omega: float, length: int, sigma: float, ridge: float) -> Model:
    import numpy as np

    from dotphase.model.channels import Attention, Chosen, Mixture, chosen_wrongly, cross_entropy
    from dotphase.model.definition import Model
    from dotphase.model.paper import kind_mixing, kind_positions

    teacher = Mixture(Attention(np.asarray(1.0)), np.asarray(omega), kind_mixing(length))
    return Model(
        Chosen(teacher), noise=length, loss=cross_entropy, metric=chosen_wrongly, length=length,
        sigma=sigma, positions=kind_positions(length), ridge=ridge,
    )  # fmt: skip


MODEL = NamedModel(
    _build,
    table(
        Parameter("omega", Number(at_least=0, at_most=1), 0.3, "Positional weight of the teacher."),
        Parameter("length", Whole(2), 2, "Tokens in a sentence."),
        Parameter("sigma", Number(above=0), 1.0, "Standard deviation of the tokens."),
        Parameter("ridge", Number(above=0), 0.01, "Penalty lambda."),
    ),
    "Cross-entropy on tokens that the teacher's attention draws.",
)  # fmt: skip
