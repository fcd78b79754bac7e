"""Where training and message passing begin: one file for each start, which defines `START`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dotphase.config.registry import Choices

if TYPE_CHECKING:
    from dotphase.finite_d.initialization import Start

STARTS: Choices[Start] = Choices(
    "start", __name__, "START", first=("semantic", "positional", "mixed", "random")
)
