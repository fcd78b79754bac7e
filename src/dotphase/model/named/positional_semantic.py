"""The model of the paper and its relatives: longer sentences, untied students, power laws."""

from __future__ import annotations

from typing import Any

from dotphase import model
from dotphase.config import validation
from dotphase.config.parameters import (
    Flag,
    Integer,
    Number,
    Parameter,
    ParameterType,
    Slider,
    table,
)
from dotphase.model.named import NamedModel


class Mixing(ParameterType):
    """Name of a positional attention matrix, or the matrix itself.

    A file is read immediately, not later on another machine.
    """

    name = "mixing"
    label = "standard|other|FILE.json"

    def check(self, field: str, value: Any) -> Any:
        """A name or a list of rows."""
        from dotphase.model.mixing import MIXING, read_mixing

        is_name = isinstance(value, str) and value in MIXING
        return value if is_name else read_mixing(value).tolist()

    def parse(self, field: str, text: str) -> Any:
        """A name, or the path of a file."""
        return text if text == "standard" else self.check(field, text)


def _build(exponent: float, atoms: int, **others: Any) -> model.Model:
    from dotphase.model.spectrum import power_law

    spectrum = power_law(exponent, atoms) if exponent else None
    return model.paper.positional_semantic(**others, spectrum=spectrum)


def _fits(length: int, kinds: int) -> None:
    validation.integer("kinds", kinds, at_least=2, at_most=length)


#: The parameters of the family; options, study tables and sliders are made from these lines.
MODEL = NamedModel(
    _build,
    table(
        Parameter("omega", Number(at_least=0, at_most=1), 0.3,
                  "Positional weight of the teacher, in [0, 1].", Slider("ω", 0.0, 1.0, 0.005)),
        Parameter("sigma", Number(above=0), 0.5,
                  "Standard deviation of the tokens.", Slider("σ", 0.1, 1.5, 0.01)),
        Parameter("ridge", Number(above=0), 0.01,
                  "Penalty lambda.", Slider("λ", 1e-4, 1.0, 0.05, True)),
        Parameter("mixing", Mixing(), "standard", "Positional attention matrix A."),
        Parameter("student_rank", Integer(1), 1, "Columns of the student's matrix."),
        Parameter("length", Integer(2), 2, "Tokens in a sentence."),
        Parameter("kinds", Integer(2), 2, "Kinds of positions, at most the length."),
        Parameter("untied", Flag(), False, "Give the student separate queries and keys."),
        Parameter("exponent", Number(at_least=0), 0.0, "Power law of the tokens' spectrum."),
        Parameter("atoms", Integer(1), 32, "Different eigenvalues of that spectrum."),
    ),
    "The model of the paper: a teacher that mixes both mechanisms.",
    rules=((("length", "kinds"), _fits),),
)  # fmt: skip
