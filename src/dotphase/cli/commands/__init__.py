"""The commands: one file each, with a click function called `command`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dotphase.config.registry import Registry

if TYPE_CHECKING:
    import click

#: Commands by name, in the order of the help.
COMMANDS: Registry[click.Command] = Registry(
    "command",
    "dotphase.cli.commands",
    "command",
    order=("solve", "curve", "critical", "diagram", "dynamics", "online", "train", "amp", "compare",
           "histogram", "study", "explore"),
)  # fmt: skip
