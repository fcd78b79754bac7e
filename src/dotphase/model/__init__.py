"""What is solved and trained: tokens, teacher, student, ridge; and the models that come with it.

The names are declared in ``__init__.pyi`` and loaded on first use: the list of named models below
this package is read without JAX.
"""

from __future__ import annotations

from typing import Any

from dotphase import _lazy

_HOMES = _lazy.read_stub(__file__)


def __getattr__(name: str) -> Any:
    value = globals()[name] = _lazy.load(__name__, _HOMES, name)
    return value
