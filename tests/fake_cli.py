"""The command line with the fake task, in a process of its own."""

import resource
import sys
from pathlib import Path

import fake_task  # noqa: F401
from dotphase.cli.main import main
from dotphase.runtime import processes

if __name__ == "__main__":
    processes.COMMAND = (str(Path(__file__).with_name("fake_worker.py")),)
    limit = int(sys.argv[1])
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    main(sys.argv[2:])
