"""Single-location regression: the label is read from one token, which a hidden variable marks.

Tokens ``x_l = sqrt(strength) mu 1[l = s] + z_l``, labels ``y = Q*.x_s/sqrt d + noise z``, with a
hidden position s (P. Marion et al., arXiv:2410.01537; O. Duranthon et al., arXiv:2509.21936). The
student answers ``softmax(x k) . x v`` with values v and keys k as its two columns; linear attention
``x k . x v/L``, the affine ``(1 + x k) . x v/L`` and the sum of all tokens serve for comparison.
"""

from __future__ import annotations

from dotphase import model
from dotphase.config.parameters import Choice, Integer, Number, Parameter, table
from dotphase.model.named import NamedModel


def _build(strength: float, pooling: str, length: int, noise: float, ridge: float) -> model.Model:
    import numpy as np

    from dotphase.model.latent import Latent

    channels = model.channels
    answer = getattr(channels, f"{pooling}_pooling")
    return model.Model(
        channels.ChosenToken(noise), noise=1, length=length, sigma=1.0, ridge=ridge,
        student_rank=1 if pooling == "mean" else 2,
        loss=channels.PooledLoss(answer), metric=channels.PooledLoss(answer, 1.0),
        latent=Latent(np.eye(length)[:, :, None], gram=[[strength]]),
    )  # fmt: skip


MODEL = NamedModel(
    _build,
    table(
        Parameter("strength", Number(above=0), 4.0, "Squared length of the mark."),
        Parameter("pooling", Choice(("attention", "linear", "affine", "mean")), "attention",
                  "How the student reads its tokens."),
        Parameter("length", Integer(2), 3, "Tokens in a sentence."),
        Parameter("noise", Number(at_least=0), 0.0, "Standard deviation of the labels' noise."),
        Parameter("ridge", Number(above=0), 0.01, "Penalty lambda."),
    ),
    "Single-location regression: read the token that is marked.",
)  # fmt: skip
