"""Regression with the absolute value as loss: one token, labels ``h + noise z``."""

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

    return Model(
        channels.NoisyField(np.asarray(noise)), noise=1, sigma=sigma, ridge=ridge,
        loss=channels.absolute, metric=channels.squared_error,
        proximal=channels.absolute_proximal,
    )  # fmt: skip


MODEL = NamedModel(
    _build,
    table(
        Parameter("sigma", Number(above=0), 1.0, "Standard deviation of the inputs."),
        Parameter("ridge", Number(above=0), 0.01, "Penalty lambda."),
        Parameter("noise", Number(at_least=0), 0.5, "Standard deviation of the labels' noise."),
    ),
    "Least absolute deviations on noisy labels.",
)  # fmt: skip
