"""Ridge regression: one token, and the identity as teacher and student."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dotphase._numerics.parameters import Number, Parameter, table
from dotphase.model.named import NamedModel

if TYPE_CHECKING:
    from dotphase.model.definition import Model


def _build(sigma: float, ridge: float, noise: float) -> Model:
    import numpy as np

    from dotphase.model import channels
    from dotphase.model.definition import Model
    from dotphase.model.glm import identity, scalar_link

    if noise == 0:
        return scalar_link(identity, identity, sigma=sigma, ridge=ridge)
    return Model(
        channels.NoisyField(np.asarray(noise)), noise=1, sigma=sigma, ridge=ridge,
        loss=channels.squared, metric=channels.squared_error,
    )  # fmt: skip


MODEL = NamedModel(
    _build,
    table(
        Parameter("sigma", Number(above=0), 1.0, "Standard deviation of the inputs."),
        Parameter("ridge", Number(above=0), 0.01, "Penalty lambda."),
        Parameter("noise", Number(at_least=0), 0.0, "Standard deviation of the labels' noise."),
    ),
    "Ridge regression on the labels of a linear teacher.",
)
