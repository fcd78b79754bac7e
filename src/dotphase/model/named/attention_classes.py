"""Classification by attention: the label of a token is a token chosen by the teacher's row.

The token is drawn with the probabilities of the row, or is the likeliest one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dotphase.config.parameters import Choice, Parameter
from dotphase.model.named import NamedModel
from dotphase.model.named._attention import parameters

if TYPE_CHECKING:
    from dotphase.model.definition import Model


def _build(omega: float, labels: str, length: int, sigma: float, ridge: float) -> Model:
    import numpy as np

    from dotphase.model import channels
    from dotphase.model.definition import Model
    from dotphase.model.paper import kind_mixing, kind_positions

    attention = channels.Attention(np.asarray(1.0))
    mixture = channels.Mixture(attention, np.asarray(omega), kind_mixing(length))
    drawn = labels == "drawn"
    return Model(
        channels.Chosen(mixture) if drawn else channels.Likeliest(mixture),
        noise=length if drawn else 0, length=length, sigma=sigma, ridge=ridge,
        loss=channels.cross_entropy, metric=channels.chosen_wrongly,
        positions=kind_positions(length),
    )  # fmt: skip


MODEL = NamedModel(
    _build,
    parameters(
        Parameter("labels", Choice(("drawn", "likeliest")), "drawn",
                  "A token's class is drawn from its row, or is the largest entry."),
        sigma=1.0,
    ),
    "Cross-entropy on tokens that the teacher's attention draws.",
)  # fmt: skip
