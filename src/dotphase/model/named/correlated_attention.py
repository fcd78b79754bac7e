"""The paper's model with tokens that are correlated inside a sentence."""

from __future__ import annotations

from typing import Any

from dotphase import model
from dotphase.config.parameters import Number, Parameter
from dotphase.model.named import NamedModel
from dotphase.model.named._attention import parameters


def _build(correlation: float, length: int, **others: Any) -> model.Model:
    import numpy as np

    same = np.eye(length)
    paper = model.paper.positional_semantic(length=length, **others)
    return paper.replace(correlation=same + correlation * (1 - same))


MODEL = NamedModel(
    _build,
    parameters(
        Parameter("correlation", Number(at_least=-0.9, at_most=0.9), 0.3, "Between two tokens.")
    ),
    "The paper's model with correlated tokens.",
)
