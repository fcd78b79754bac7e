"""Public functions compute in fixed settings, and not in forks of busy processes."""

import subprocess
import sys

FORK = """
import os
from dotphase.errors import InvalidInput
from dotphase.runtime.precision import in_double_precision

@in_double_precision
def work():
    return 1

def child():
    process = os.fork()
    if process:
        return os.waitpid(process, 0)[1]
    try:
        work()
    except InvalidInput as error:
        os._exit(7 if "'spawn'" in str(error) else 8)
    os._exit(0)

assert child() == 0  # nothing was computed before
work()
assert os.waitstatus_to_exitcode(child()) == 7
work()
"""


def test_a_fork_after_a_computation_is_refused():
    command = [sys.executable, "-W", "ignore", "-c", FORK]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
