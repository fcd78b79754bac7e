"""The commands: one file each, with a click function called `command`."""

import click

from dotphase.config.registry import Registry

#: Commands by name, in the order of the help.
COMMANDS: Registry[click.Command] = Registry(
    "command",
    "dotphase.cli.commands",
    "command",
    order=("solve", "curve", "critical", "diagram", "dynamics", "online", "train", "amp", "compare",
           "histogram", "study", "explore"),
)  # fmt: skip
