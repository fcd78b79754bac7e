"""Entry point: the group of commands, and how errors become exit codes.

0 done; 1 unexpected error; 2 bad input, one line on stderr; 3 not converged or no such branch; 130
interrupted. Nothing heavy is imported until a command runs, so `--help` is quick.
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
GRACE_PERIOD = 1.2
#: Longest error message, in characters.
MAX_MESSAGE_LENGTH = 600
#: Seconds between checks of whether the command is done.
POLL_INTERVAL = 0.05


class _Commands(click.Group):
    """Group that imports the module of a command at its first use."""

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
@click.option("--debug", is_flag=True, help="Show the traceback of an unexpected error.")
@click.option("-v", "--verbose", is_flag=True, help="Log devices and compilations on stderr.")
def cli(debug: bool, verbose: bool) -> None:
    """Positional and semantic learning in dot-product attention, with error bars."""
    if verbose:
        logging.basicConfig(format="%(relativeCreated)7.0f ms  %(message)s")
        logging.getLogger("dotphase").setLevel(logging.INFO)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and exit with its code."""
    _open_streams()
    warnings.showwarning = _show_warning  # type: ignore[assignment]
    code = _interruptible(arguments)
    try:
        sys.stdout.flush()
    except OSError as error:
        if code not in (2, 130):  # these have printed their own message
            code = _refuse(f"the output cannot be written ({error.strerror})")
        os._exit(code)  # sys.exit would flush again and print a second error
    if code == 130:
        os._exit(code)  # threads that compile cannot be stopped otherwise
    sys.exit(code)


def _open_streams() -> None:
    """Redirect closed streams to the null device."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115


def _interruptible(arguments: Sequence[str] | None) -> int:
    """Run a command in a thread; the main thread handles signals, so that none hits a compiler.

    After an interrupt, a command with finished work returns it. A command that does not end within
    `GRACE_PERIOD` seconds is compiling, or waits for a thread that is, and has nothing to lose.
    """
    codes: list[int] = []
    announced = threading.Lock()
    worker = threading.Thread(target=lambda: codes.append(_run(arguments, announced)), daemon=True)
    signal_times: list[float] = []

    def handle(number: int, frame: object) -> None:
        interrupt.request_stop()
        signal_times.append(time.monotonic())

    for number in (signal.SIGINT, signal.SIGTERM):
        # Background jobs of a script are started with the interrupt ignored, and stay so.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handle)
    threading.excepthook = _thread_excepthook
    worker.start()
    while worker.is_alive():
        worker.join(POLL_INTERVAL)  # without a timeout, join would not return after a signal
        expired = signal_times and time.monotonic() - signal_times[0] > GRACE_PERIOD
        if (expired and not interrupt.is_handing_over()) or len(signal_times) > 1:
            _announce_interrupt(announced)
            os._exit(130)
    return codes[0] if codes else 1


def _show_warning(message: Warning | str, *location: object, **details: object) -> None:
    """Print a warning in one line, without the source line."""
    click.echo("dotphase: " + " ".join(str(message).split()), err=True)


def _thread_excepthook(error: threading.ExceptHookArgs) -> None:
    """Print the exception of a thread, except an interrupt."""
    if not issubclass(error.exc_type, KeyboardInterrupt):
        threading.__excepthook__(error)


def _announce_interrupt(announced: threading.Lock) -> None:
    """Print the message once: the first caller acquires the lock."""
    if announced.acquire(blocking=False):
        click.echo("dotphase: interrupted", err=True)


def _run(arguments: Sequence[str] | None, announced: threading.Lock | None = None) -> int:
    """Run a command and return its exit code; errors become one line on stderr."""
    words, stdout = sys.argv[1:] if arguments is None else list(arguments), sys.stdout
    try:
        result = cli.main(args=words, prog_name="dotphase", standalone_mode=False)
    except SystemExit as exit:
        if "_DOTPHASE_COMPLETE" in os.environ:  # the completion of the shell
            return int(exit.code or 0)
        if sys.stdout is not stdout:  # click has replaced it and exits when a pipe is closed
            return _refuse("the output cannot be written (Broken pipe)")
        return _refuse(f"a function of the model called sys.exit({exit.code!r})")
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return 2
    except click.ClickException as error:
        return _refuse(error.format_message())
    except (click.Abort, KeyboardInterrupt):
        _announce_interrupt(announced or threading.Lock())
        return 130
    except InvalidInput as error:
        return _refuse(str(error))
    except OSError as error:
        path = error.filename or "the output"
        return _refuse(f"{path} cannot be read or written ({error.strerror or error})")
    except MemoryError:
        return _refuse("not enough memory; use smaller sizes")
    except Exception as error:
        debug = "--debug" in words
        if debug:
            traceback.print_exc()
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        hint = "" if debug else "; `dotphase --debug COMMAND` shows the traceback"
        click.echo(f"dotphase: unexpected error ({reason[:300]}); please report it{hint}", err=True)
        return 1
    return result if isinstance(result, int) else 0


def _refuse(message: str) -> int:
    """Print an error in one line and return exit code 2."""
    line = " ".join(message.split())
    if len(line) > MAX_MESSAGE_LENGTH:  # keep the field at the start and the rule at the end
        line = f"{line[: MAX_MESSAGE_LENGTH // 2]} ... {line[-MAX_MESSAGE_LENGTH // 2 :]}"
    click.echo(f"dotphase: {line}", err=True)
    return 2
