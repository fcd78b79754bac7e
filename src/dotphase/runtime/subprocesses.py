"""Processes that compute for this one: how they are started.

Not forked, since JAX does not survive a fork, and not through `multiprocessing`, which would run
the user's script again in every worker.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

import dotphase

#: One thread per worker: several workers fill the cores better, and sums that are split
#: among threads would depend on their number. No worker takes a whole GPU's memory at once.
ENVIRONMENT = {
    "NPROC": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
}


def start(*command: str, complaints: int | IO[bytes], **more: Any) -> subprocess.Popen[Any]:
    """A Python that runs a command, to be asked through its input; `more` as for `Popen`."""
    package = Path(dotphase.__file__).parent.parent
    path = os.pathsep.join([str(package), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.Popen(
        [sys.executable, *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=complaints,
        env=ENVIRONMENT | os.environ | {"PYTHONPATH": path},
        # An interrupt from the keyboard is for the process that asked.
        start_new_session=True,
        **more,
    )


def take_over_output() -> int:
    """In a worker: a descriptor for answers alone; whatever else prints does not get between."""
    answers = os.dup(1)
    os.dup2(2, 1)
    return answers
