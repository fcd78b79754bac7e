"""How the training loss is minimised: one file for each optimiser, which defines `OPTIMISER`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dotphase.config.registry import Choices

if TYPE_CHECKING:
    from dotphase.training.loop import Optimiser

OPTIMISERS: Choices[Optimiser] = Choices(
    "optimizer", __name__, "OPTIMISER", first=("lbfgs", "gd", "momentum", "adam", "sgd")
)
