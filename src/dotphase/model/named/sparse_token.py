"""Sparse-token classification: decide if one of the tokens is marked, or none.

Positive sentences have a weak signal in one token, negative ones are noise (N. Barnfield, H. Cui,
Y. M. Lu, arXiv:2509.25153). The student answers ``softmax(x k) . x v - sqrt(strength)/2``, or with
the sum of its tokens, and is trained with the logistic loss.
"""

from __future__ import annotations

from dotphase import model
from dotphase.config.parameters import Choice, Integer, Number, Parameter, table
from dotphase.model.named import NamedModel


def _build(strength: float, pooling: str, length: int, ridge: float) -> model.Model:
    import numpy as np

    from dotphase.model.latent import Latent

    channels = model.channels
    answer = channels.Offset(f"{pooling}_pooling", strength**0.5 / 2)
    loadings = np.concatenate([np.eye(length), np.zeros((1, length))])[:, :, None]
    return model.Model(
        channels.shifted_or_not, length=length, sigma=1.0, ridge=ridge,
        student_rank=1 if pooling == "mean" else 2,
        loss=channels.PooledLogistic(answer), metric=channels.PooledSign(answer),
        latent=Latent(loadings, [0.5 / length] * length + [0.5], gram=[[strength]]),
    )  # fmt: skip


MODEL = NamedModel(
    _build,
    table(
        Parameter("strength", Number(above=0), 9.0, "Squared length of the signal."),
        Parameter("pooling", Choice(("attention", "mean")), "attention",
                  "How the student reads its tokens."),
        Parameter("length", Integer(2), 3, "Tokens in a sentence."),
        Parameter("ridge", Number(above=0), 0.01, "Penalty lambda."),
    ),
    "Sparse-token classification: decide if a token is marked.",
)  # fmt: skip
