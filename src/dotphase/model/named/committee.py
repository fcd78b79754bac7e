"""Committee machines: teacher and student are sums of hidden units on one token."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dotphase._numerics.parameters import Number, Parameter, Whole, table
from dotphase.model.named import NamedModel

if TYPE_CHECKING:
    from dotphase.model.definition import Model


def _build(units: int, student_rank: int, sigma: float, ridge: float, noise: float) -> Model:
    import numpy as np

    from dotphase.model import channels
    from dotphase.model.definition import Model

    return Model(
        channels.NoisyCommittee(np.asarray(noise)), noise=1, sigma=sigma, ridge=ridge,
        teacher_rank=units, student_rank=student_rank,
        loss=channels.committee_loss, metric=channels.committee_error,
    )  # fmt: skip


MODEL = NamedModel(
    _build,
    table(
        Parameter("units", Whole(1), 2, "Hidden units of the teacher."),
        Parameter("student_rank", Whole(1), 2, "Hidden units of the student."),
        Parameter("sigma", Number(above=0), 1.0, "Standard deviation of the inputs."),
        Parameter("ridge", Number(above=0), 0.01, "Penalty lambda."),
        Parameter("noise", Number(at_least=0), 0.0, "Standard deviation of the labels' noise."),
    ),
    "A soft committee that learns another one.",
)  # fmt: skip
