"""A soft committee machine: one token, labels and answers are sums over hidden units.

``f(x) = sum_k erf(x_k/sqrt 2)/sqrt K`` in the teacher and, with units of its own number, in the
student.
"""

from __future__ import annotations

from dotphase import model
from dotphase.config.parameters import Integer, Parameter
from dotphase.model.named import NamedModel
from dotphase.model.named._one_token import build, parameters

FUNCTIONS = {"teacher": "NoisyCommittee", "loss": "committee_loss", "metric": "committee_error"}


def _build(units: int, student_rank: int, sigma: float, ridge: float, noise: float) -> model.Model:
    return build(FUNCTIONS, sigma, ridge, noise, units, student_rank)


MODEL = NamedModel(
    _build,
    parameters(
        Parameter("units", Integer(1), 2, "Hidden units of the teacher."),
        Parameter("student_rank", Integer(1), 2, "Hidden units of the student."),
    ),
    "A soft committee that learns another one.",
)
