"""Ridge regression: one token, labels ``h + noise z``."""

from __future__ import annotations

from dotphase import model
from dotphase.model.named import NamedModel
from dotphase.model.named._one_token import build, parameters

NOISY = {"teacher": "NoisyField", "loss": "squared", "metric": "squared_error"}


def _build(sigma: float, ridge: float, noise: float) -> model.Model:
    """Make the model; without noise teacher and student are identities, with their closed forms."""
    from dotphase.model.glm import identity, scalar_link

    if noise == 0:
        return scalar_link(identity, identity, sigma=sigma, ridge=ridge)
    return build(NOISY, sigma, ridge, noise)


MODEL = NamedModel(_build, parameters(), "Ridge regression on the labels of a linear teacher.")
