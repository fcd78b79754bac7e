"""Entry point: the group of commands, and how errors become exit codes.

0 done; 1 an error nobody foresaw; 2 bad input, one line on stderr; 3 not converged or the branch
does not exist; 130 interrupted. Nothing heavy is imported until a command runs, so `--help` is
quick.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Sequence

import click

from dotphase.cli.commands import COMMANDS
from dotphase.config.validation import unknown_name
from dotphase.errors import InvalidInput
from dotphase.runtime import interrupt

#: Seconds after an interrupt in which a command may end by itself.
PATIENCE = 1.2
#: Most characters of a line that says what is wrong.
LONGEST = 600
#: Seconds between two looks whether the command is done.
LOOK = 0.05


class _Commands(click.Group):
    """A group that imports the module of a command when the command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return COMMANDS.get(cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] == "reproduce":
            raise InvalidInput("command", args[0], "is now `python -m reproduction`, in a checkout")
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            raise InvalidInput("command", args[0], unknown_name("command", args[0], COMMANDS))
        return super().resolve_command(ctx, args)


@click.command(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
    epilog="Example: dotphase solve --alpha 1.5 --branch semantic",
)
@click.version_option(package_name="dotphase", prog_name="dotphase")
@click.option("--debug", is_flag=True, help="Show the traceback of an unforeseen error.")
@click.option("-v", "--verbose", is_flag=True, help="Tell on stderr what is done, and where.")
def cli(debug: bool, verbose: bool) -> None:
    """Positional and semantic learning in dot-product attention, solved exactly."""
    if verbose:
        logging.basicConfig(format="%(relativeCreated)7.0f ms  %(message)s")
        logging.getLogger("dotphase").setLevel(logging.INFO)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and exit with its code."""
    _open_streams()
    warnings.showwarning = _tell  # type: ignore[assignment]
    code = _interruptible(arguments)
    try:
        sys.stdout.flush()
    except OSError as error:
        if code not in (2, 130):  # else it has been told, or is to be expected
            code = _refuse(f"the output cannot be written ({error.strerror})")
        os._exit(code)  # Python would try, and complain, once more
    if code == 130:
        os._exit(code)  # other threads may be compiling, and cannot be ended otherwise
    sys.exit(code)


def _open_streams() -> None:
    """A stream that is closed takes what is written to it, and shows it to nobody."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115


def _interruptible(arguments: Sequence[str] | None) -> int:
    """Run a command beside the thread that takes signals, so that none of them hits a compiler.

    A command that has finished work to hand over does so; one that does not begin to within
    `PATIENCE` seconds is compiling, or waits for a thread that is, and has nothing to lose.
    """
    codes: list[int] = []
    told = threading.Lock()
    worker = threading.Thread(target=lambda: codes.append(_run(arguments, told)), daemon=True)
    stopped: list[float] = []

    def stop(number: int, frame: object) -> None:
        interrupt.request_stop()
        stopped.append(time.monotonic())

    for number in (signal.SIGINT, signal.SIGTERM):
        # Background jobs of a script are started with the interrupt ignored, and stay so.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, stop)
    threading.excepthook = _complain
    worker.start()
    while worker.is_alive():
        worker.join(LOOK)  # without a limit it would go on waiting after the signal
        late = (
            stopped and time.monotonic() - stopped[0] > PATIENCE and not interrupt.is_handing_over()
        )
        if late or len(stopped) > 1:
            _tell_interrupted(told)
            os._exit(130)
    return codes[0] if codes else 1


def _tell(message: Warning | str, *where: object, **more: object) -> None:
    """A warning in one line, without the line of code it comes from."""
    click.echo("dotphase: " + " ".join(str(message).split()), err=True)


def _complain(failed: threading.ExceptHookArgs) -> None:
    """What a thread that nobody waits for died of, unless it was asked to stop."""
    if not issubclass(failed.exc_type, KeyboardInterrupt):
        threading.__excepthook__(failed)


def _tell_interrupted(told: threading.Lock) -> None:
    """Once, by the command or by the thread that waits for it, whichever is first."""
    if told.acquire(blocking=False):
        click.echo("dotphase: interrupted", err=True)


def _run(arguments: Sequence[str] | None, told: threading.Lock | None = None) -> int:
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        result = cli.main(args=given, prog_name="dotphase", standalone_mode=False)
    except SystemExit as end:  # the shell has asked for words that complete what is typed
        return int(end.code or 0)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return 2
    except click.ClickException as error:
        return _refuse(error.format_message())
    except (click.Abort, KeyboardInterrupt):
        _tell_interrupted(told or threading.Lock())
        return 130
    except InvalidInput as error:
        return _refuse(str(error))
    except OSError as error:
        what = error.filename or "the output"
        return _refuse(f"{what} cannot be read or written ({error.strerror or error})")
    except MemoryError:
        return _refuse("not enough memory for what was asked; use smaller sizes")
    except Exception as error:
        if "--debug" in given:
            traceback.print_exc()
        what = " ".join(f"{type(error).__name__}: {error}".split())
        more = "please report it with the command" + (
            "" if "--debug" in given else "; --debug before the command shows where it was"
        )
        click.echo(f"dotphase: unforeseen error ({what[:300]}); {more}", err=True)
        return 1
    return result if isinstance(result, int) else 0


def _refuse(message: str) -> int:
    line = " ".join(message.split())
    if len(line) > LONGEST:  # what was given may be long, and what is allowed comes last
        line = f"{line[: LONGEST // 2]} ... {line[-LONGEST // 2 :]}"
    click.echo(f"dotphase: {line}", err=True)
    return 2
