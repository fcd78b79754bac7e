"""The paper's model with masked attention: a token attends to itself and to those before it."""

from __future__ import annotations

from typing import Any

from dotphase import model
from dotphase.model.named import NamedModel
from dotphase.model.named._attention import build, parameters


def _build(length: int, **others: Any) -> model.Model:
    import numpy as np

    causal = model.channels.Attention(1.0, causal=True)
    mixing = np.tril(model.paper.kind_mixing(length))
    mixing /= mixing.sum(axis=1, keepdims=True)
    return build(causal, causal, length=length, mixing=mixing, **others)


MODEL = NamedModel(
    _build, parameters(length=3), "Masked attention: both mechanisms, later tokens masked."
)
