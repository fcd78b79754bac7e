"""The command line, also as ``python -m dotphase``: signals first, then everything else."""

import os
import signal
import sys
from types import FrameType


def _leave(number: int, frame: FrameType | None) -> None:
    os.write(2, b"dotphase: interrupted\n")
    os._exit(130)


def main() -> None:
    """Run the command line and exit with its code.

    An interrupt before the command line is imported ends the program as one after it does.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        # Background jobs of a script are started with the interrupt ignored, and stay so.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _leave)
    from dotphase.cli.main import main as run

    sys.exit(run())


if __name__ == "__main__":
    main()
