"""The commands: one file each, with a click function called `command`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dotphase.config.registry import Choices

if TYPE_CHECKING:
    import click

#: Commands by name, in the order of the help.
COMMANDS: Choices[click.Command] = Choices(
    "command",
    "dotphase.cli.commands",
    "command",
    first=("solve", "curve", "critical", "diagram", "dynamics", "train", "amp", "compare",
           "histogram", "study", "reproduce", "explore"),
)  # fmt: skip
