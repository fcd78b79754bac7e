"""Classification by attention: the label of a token is a token chosen by the teacher's row.

The token is drawn with the probabilities of the row, or is the likeliest one.
"""

from __future__ import annotations

from dotphase import model
from dotphase.config.parameters import Choice, Parameter
from dotphase.model.named import NamedModel
from dotphase.model.named._attention import parameters


def _build(omega: float, labels: str, length: int, sigma: float, ridge: float) -> model.Model:
    channels, paper, drawn = model.channels, model.paper, labels == "drawn"
    mixture = channels.Mixture(channels.Attention(1.0), omega, paper.kind_mixing(length))
    return model.Model(
        channels.Chosen(mixture) if drawn else channels.Likeliest(mixture),
        noise=length if drawn else 0, length=length, sigma=sigma, ridge=ridge,
        loss=channels.cross_entropy, metric=channels.chosen_wrongly,
        positions=paper.kind_positions(length),
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
