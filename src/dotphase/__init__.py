"""dotphase: positional and semantic learning in dot-product attention, solved exactly.

The public names are declared in ``__init__.pyi`` and loaded from there on first use, so that
importing the package (and asking the command line for help) costs nothing. JAX's global
settings are left alone: public functions compute in float64 inside a context of their own.
"""

from __future__ import annotations

from typing import Any

from dotphase import _lazy

#: Public names and the modules they live in.
_HOMES = _lazy.read_stub(__file__)

#: What names of version 0.1 that have moved are called now.
_RENAMED = {
    **{name: f"dp.analysis.{name}" for name in (
        "basin_shares", "branch_end", "continue_in_alpha", "landscape", "linear_test_error",
        "ridge_regression",
    )},
    **{name: f"dp.results.{name}" for name in (
        "Baseline", "BayesOptimal", "Critical", "Curvature", "Dataset", "Flow", "FlowPoint",
        "Landscape", "MessagePassing", "Run", "Solution", "Training",
    )},
    **{f"plot_{name}": f"dp.plot.{name}" for name in (
        "basins", "bayes", "curve", "diagram", "histogram_attention", "histogram_curves",
        "histogram_distances", "histogram_emergence", "histogram_landscape", "iterations",
        "mechanisms",
    )},
    "bayes_curve": "dp.bayes.curve",
    "bayes_optimal": "dp.bayes.optimal",
    "descent": "dp.flow.descent",
    "flow_field": "dp.flow.field",
    "flow_fixed_points": "dp.flow.fixed_points",
    "population_flow": "dp.flow.follow",
    "MixedTeacher": "dotphase.model.paper.MixedTeacher",
}  # fmt: skip

__all__ = sorted([*_HOMES, "__version__"])


def __getattr__(name: str) -> Any:
    value = _version() if name == "__version__" else _lazy.load(__name__, _HOMES, name, _RENAMED)
    globals()[name] = value
    return value


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version  # not cheap to import

    try:
        return version("dotphase")
    except PackageNotFoundError:  # run from source
        return "0.0.0+source"


def __dir__() -> list[str]:
    return __all__
