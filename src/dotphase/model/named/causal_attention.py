"""The paper's model with masked attention: a token attends to itself and to those before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dotphase.model.named import NamedModel
from dotphase.model.named._attention import parameters

if TYPE_CHECKING:
    from dotphase.model.definition import Model


def _build(omega: float, length: int, sigma: float, ridge: float) -> Model:
    import numpy as np

    from dotphase.model.channels import Attention, Mixture
    from dotphase.model.definition import Model
    from dotphase.model.paper import kind_mixing, kind_positions

    causal = Attention(np.asarray(1.0), causal=True)
    mixing = np.tril(kind_mixing(length))
    mixing /= mixing.sum(axis=1, keepdims=True)
    return Model(
        Mixture(causal, np.asarray(omega), mixing), causal, length=length, sigma=sigma,
        positions=kind_positions(length), ridge=ridge,
    )  # fmt: skip


MODEL = NamedModel(
    _build,
    parameters(length=3),
    "Masked attention: both mechanisms, later tokens masked.",
)  # fmt: skip
