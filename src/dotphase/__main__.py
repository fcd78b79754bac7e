"""Entry point of the command ``dotphase`` and of ``python -m dotphase``."""

import os
import signal
import sys
from types import FrameType


def _exit_interrupted(number: int, frame: FrameType | None) -> None:
    os.write(2, b"dotphase: interrupted\n")
    os._exit(130)


def main() -> None:
    """Run the command line and exit with its code.

    Signal handlers come first, so that an interrupt during the imports also exits with 130.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        # A shell starts background jobs with the interrupt ignored; keep it ignored.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _exit_interrupted)
    from dotphase.cli.main import main as run_command_line

    sys.exit(run_command_line())


if __name__ == "__main__":
    main()
