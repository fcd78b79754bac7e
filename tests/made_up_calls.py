"""Functions for worker processes, which must be able to import them."""

import os
import sys
import time

from dotphase.errors import InvalidInput


def count_to(number, report):
    for k in range(number):
        report(k + 1)
    return "done"


def print_everywhere(report):
    print("to stdout", flush=True)
    os.write(1, b"\x80\x04 to the descriptor of stdout")
    print("to stderr", file=sys.stderr)


def print_much(size, report):
    print("x" * size, file=sys.stderr)


def leave(reason, report):
    sys.exit(reason)


def raise_invalid(report):
    raise InvalidInput("x", 1, "must be 2")


def die(code, report):
    print("first\nlast words", file=sys.stderr, flush=True)
    os._exit(code)


def kill_self(number, report):
    os.kill(os.getpid(), number)


def loop(report):
    while True:
        time.sleep(0.01)


def return_lambda(report):
    return lambda: None
