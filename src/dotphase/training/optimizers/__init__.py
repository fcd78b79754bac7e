"""Optimizers of the training loss, one file each, which defines `OPTIMIZER`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dotphase.config.registry import Registry

if TYPE_CHECKING:
    from dotphase.training.loop import Optimizer

OPTIMIZERS: Registry[Optimizer] = Registry(
    "optimizer", __name__, "OPTIMIZER", order=("lbfgs", "gd", "momentum", "adam", "sgd")
)
