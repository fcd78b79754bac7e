"""Parameters and factory of the models that vary the paper's attention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dotphase import model
from dotphase.config.parameters import Integer, Number, Parameter, table


def parameters(*extra: Parameter, length: int = 2, sigma: float = 0.5) -> Mapping[str, Parameter]:
    """Table of the positional weight, extra parameters, length, scale and ridge."""
    return table(
        Parameter("omega", Number(at_least=0, at_most=1), 0.3, "Positional weight of the teacher."),
        *extra,
        Parameter("length", Integer(2), length, "Tokens in a sentence."),
        Parameter("sigma", Number(above=0), sigma, "Standard deviation of the tokens."),
        Parameter("ridge", Number(above=0), 0.01, "Penalty lambda."),
    )


def build(
    teacher: Any, student: Any, omega: float, length: int, mixing: Any = None, **others: Any
) -> model.Model:
    """Make a model whose teacher mixes an attention with `mixing`, by default the paper's."""
    mixing = model.paper.kind_mixing(length) if mixing is None else mixing
    positions = model.paper.kind_positions(length)
    mixture = model.channels.Mixture(teacher, omega, mixing)
    return model.Model(mixture, student, length=length, positions=positions, **others)
