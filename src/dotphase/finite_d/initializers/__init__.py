"""Initial weights of training and message passing: one file for each start, with `INITIALIZER`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dotphase.config.registry import Registry

if TYPE_CHECKING:
    from dotphase.finite_d.initialization import Initializer

INITIALIZERS: Registry[Initializer] = Registry(
    "start",
    __name__,
    "INITIALIZER",
    order=("semantic", "positional", "mixed", "random", "first_layer", "last_layer"),
)
