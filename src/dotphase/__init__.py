"""dotphase: positional and semantic learning in dot-product attention, solved exactly.

The public names are declared in ``__init__.pyi`` and loaded from there on first use, so that
importing the package (and asking the command line for help) costs nothing. JAX's global
settings are left alone: public functions compute in float64 inside a context of their own.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any

from dotphase._lazy import load, read_stub

#: Public names and the modules they live in.
_HOMES = read_stub(__file__)

__all__ = sorted([*_HOMES, "__version__"])

try:
    __version__ = version("dotphase")
except PackageNotFoundError:  # run from source
    __version__ = "0.0.0+source"


def __getattr__(name: str) -> Any:
    value = globals()[name] = load(__name__, _HOMES, name)
    return value


def __dir__() -> list[str]:
    return __all__
