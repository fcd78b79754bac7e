"""The paper's model with tokens that are correlated inside a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dotphase.config.parameters import Number, Parameter
from dotphase.model.named import NamedModel
from dotphase.model.named._attention import parameters

if TYPE_CHECKING:
    from dotphase.model.definition import Model


def _build(omega: float, correlation: float, length: int, sigma: float, ridge: float) -> Model:
    import numpy as np

    from dotphase.model.paper import positional_semantic

    paper = positional_semantic(omega, sigma, ridge, length=length)
    same = np.eye(length)
    return paper.replace(correlation=same + correlation * (1 - same))


MODEL = NamedModel(
    _build,
    parameters(
        Parameter("correlation", Number(at_least=-0.9, at_most=0.9), 0.3, "Between two tokens."),
    ),
    "The paper's model with correlated tokens.",
)  # fmt: skip
