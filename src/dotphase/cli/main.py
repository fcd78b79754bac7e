"""Entry point: the group of commands, and how errors become exit codes.

0 done; 2 bad input, one line on stderr; 3 not converged or the branch does not exist;
130 interrupted. Nothing heavy is imported until a command runs, so `--help` is quick.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from dotphase.cli.commands import COMMANDS
from dotphase.errors import InvalidInput


class _Commands(click.Group):
    """A group that imports the module of a command when the command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return COMMANDS.get(cmd_name)


@click.command(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
    epilog="Example: dotphase solve --alpha 1.5 --branch semantic",
)
@click.version_option(package_name="dotphase", prog_name="dotphase")
def cli() -> None:
    """Positional and semantic learning in dot-product attention, solved exactly."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and exit with its code."""
    code = _run(arguments)
    sys.stdout.flush()
    sys.exit(code)


def _run(arguments: Sequence[str] | None) -> int:
    try:
        result = cli.main(
            args=None if arguments is None else list(arguments), standalone_mode=False
        )
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return 2
    except click.ClickException as error:
        return _refuse(error.format_message())
    except (click.Abort, KeyboardInterrupt):
        click.echo("dotphase: interrupted; finished work is kept", err=True)
        return 130
    except InvalidInput as error:
        return _refuse(str(error))
    return result if isinstance(result, int) else 0


def _refuse(message: str) -> int:
    click.echo("dotphase: " + " ".join(message.split()), err=True)
    return 2
