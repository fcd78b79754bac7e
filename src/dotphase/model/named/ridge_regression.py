"""Ridge regression: one token, and the identity as teacher and student."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dotphase._numerics.parameters import Number, Parameter, table
from dotphase.model.named import NamedModel

if TYPE_CHECKING:
    from dotphase.model.definition import Model


def _build(sigma: float, ridge: float) -> Model:
    from dotphase.model.glm import identity, scalar_link

    return scalar_link(identity, identity, sigma=sigma, ridge=ridge)


MODEL = NamedModel(
    _build,
    table(
        Parameter("sigma", Number(above=0), 1.0, "Standard deviation of the inputs."),
        Parameter("ridge", Number(above=0), 0.01, "Penalty lambda."),
    ),
    "Ridge regression on noiseless labels.",
)
