"""Start worker processes.

They are not forked, since JAX does not survive a fork. They are not started by `multiprocessing` or
`concurrent.futures` either: both run the user's script again in every worker, unless it is guarded
by ``if __name__ == "__main__"``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

import dotphase

#: One thread per worker: several workers fill the cores better, and sums that are split among
#: threads would depend on their number. No worker reserves all memory of a GPU.
ENVIRONMENT = {
    "NPROC": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
}


def start(*command: str, stderr: int | IO[bytes], **options: Any) -> subprocess.Popen[Any]:
    """Start Python with pipes for requests and answers; `options` are passed to `Popen`."""
    package = Path(dotphase.__file__).parent.parent
    path = os.pathsep.join([str(package), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.Popen(
        [sys.executable, *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        env=ENVIRONMENT | os.environ | {"PYTHONPATH": path},
        # Ctrl-C in the terminal interrupts the parent process, which ends its workers.
        start_new_session=True,
        **options,
    )


def take_over_output() -> int:
    """Return a descriptor for answers in a worker; other output goes to stderr from now on."""
    answers = os.dup(1)
    os.dup2(2, 1)
    return answers
