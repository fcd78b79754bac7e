"""dotphase: positional and semantic learning in dot-product attention, solved exactly.

The public names below are loaded on first use, so that importing the package (and asking
the command line for help) costs nothing. JAX's global settings are left alone: public
functions compute in float64 inside a context of their own.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dotphase.baselines import linear_test_error as linear_test_error
    from dotphase.errors import InvalidInput as InvalidInput
    from dotphase.figures.curve import plot_curve as plot_curve
    from dotphase.fixedpoint import Iteration as Iteration
    from dotphase.model import Model as Model
    from dotphase.paper import positional_semantic as positional_semantic
    from dotphase.paper import softmax_attention as softmax_attention
    from dotphase.study.curve import curve as curve
    from dotphase.theory.overlaps import Overlaps as Overlaps
    from dotphase.theory.solution import Solution as Solution
    from dotphase.theory.solve import continue_in_alpha as continue_in_alpha
    from dotphase.theory.solve import solve as solve
    from dotphase.theory.solve import solve_many as solve_many

_HOMES = {
    "InvalidInput": "dotphase.errors",
    "Iteration": "dotphase.fixedpoint",
    "Model": "dotphase.model",
    "Overlaps": "dotphase.theory.overlaps",
    "Solution": "dotphase.theory.solution",
    "continue_in_alpha": "dotphase.theory.solve",
    "curve": "dotphase.study.curve",
    "linear_test_error": "dotphase.baselines",
    "plot_curve": "dotphase.figures.curve",
    "positional_semantic": "dotphase.paper",
    "softmax_attention": "dotphase.paper",
    "solve": "dotphase.theory.solve",
    "solve_many": "dotphase.theory.solve",
}

__all__ = sorted([*_HOMES, "__version__"])

try:
    __version__ = version("dotphase")
except PackageNotFoundError:  # run from source
    __version__ = "0.0.0+source"


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dotphase' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
