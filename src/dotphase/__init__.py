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
    from dotphase import histogram as histogram
    from dotphase import spectrum as spectrum
    from dotphase.baselines import linear_test_error as linear_test_error
    from dotphase.baselines.fit import Baseline as Baseline
    from dotphase.baselines.fit import baseline as baseline
    from dotphase.data import Dataset as Dataset
    from dotphase.data import sample as sample
    from dotphase.errors import Interrupted as Interrupted
    from dotphase.errors import InvalidInput as InvalidInput
    from dotphase.figures.basins import plot_basins as plot_basins
    from dotphase.figures.bayes import plot_bayes as plot_bayes
    from dotphase.figures.curve import plot_curve as plot_curve
    from dotphase.figures.diagram import plot_diagram as plot_diagram
    from dotphase.figures.histogram_attention import (
        plot_histogram_attention as plot_histogram_attention,
    )
    from dotphase.figures.histogram_curves import plot_histogram_curves as plot_histogram_curves
    from dotphase.figures.histogram_distances import (
        plot_histogram_distances as plot_histogram_distances,
    )
    from dotphase.figures.histogram_emergence import (
        plot_histogram_emergence as plot_histogram_emergence,
    )
    from dotphase.figures.histogram_landscape import (
        plot_histogram_landscape as plot_histogram_landscape,
    )
    from dotphase.figures.iterations import plot_iterations as plot_iterations
    from dotphase.figures.scatter import plot_mechanisms as plot_mechanisms
    from dotphase.fixedpoint import Iteration as Iteration
    from dotphase.glm import ridge_regression as ridge_regression
    from dotphase.glm import scalar_link as scalar_link
    from dotphase.lengths import positional_semantic_length as positional_semantic_length
    from dotphase.message_passing.run import MessagePassing as MessagePassing
    from dotphase.message_passing.run import amp as amp
    from dotphase.model import Model as Model
    from dotphase.paper import MixedTeacher as MixedTeacher
    from dotphase.paper import positional_semantic as positional_semantic
    from dotphase.paper import softmax_attention as softmax_attention
    from dotphase.spectrum import Spectrum as Spectrum
    from dotphase.study.basins import basin_shares as basin_shares
    from dotphase.study.basins import basins as basins
    from dotphase.study.bayes import bayes_curve as bayes_curve
    from dotphase.study.curve import curve as curve
    from dotphase.study.descent import descent as descent
    from dotphase.study.diagram import diagram as diagram
    from dotphase.study.execute import read_study as read_study
    from dotphase.study.execute import run_study as run_study
    from dotphase.study.journal import read_status as read_status
    from dotphase.study.spec import Study as Study
    from dotphase.study.spec import read_spec as read_spec
    from dotphase.theory.bayes import BayesOptimal as BayesOptimal
    from dotphase.theory.bayes import bayes_optimal as bayes_optimal
    from dotphase.theory.critical import Critical as Critical
    from dotphase.theory.critical import branch_end as branch_end
    from dotphase.theory.critical import critical as critical
    from dotphase.theory.critical import critical_line as critical_line
    from dotphase.theory.flow import Flow as Flow
    from dotphase.theory.flow import FlowPoint as FlowPoint
    from dotphase.theory.flow import flow_field as flow_field
    from dotphase.theory.flow import flow_fixed_points as flow_fixed_points
    from dotphase.theory.flow import population_flow as population_flow
    from dotphase.theory.landscape import Landscape as Landscape
    from dotphase.theory.landscape import landscape as landscape
    from dotphase.theory.overlaps import Overlaps as Overlaps
    from dotphase.theory.solution import Solution as Solution
    from dotphase.theory.solve import continue_in_alpha as continue_in_alpha
    from dotphase.theory.solve import solve as solve
    from dotphase.theory.solve import solve_many as solve_many
    from dotphase.training.hessian import Curvature as Curvature
    from dotphase.training.hessian import curvature as curvature
    from dotphase.training.result import Run as Run
    from dotphase.training.result import Training as Training
    from dotphase.training.run import train as train
    from dotphase.training.untied import untied as untied

_HOMES = {
    "Baseline": "dotphase.baselines.fit",
    "BayesOptimal": "dotphase.theory.bayes",
    "Curvature": "dotphase.training.hessian",
    "Dataset": "dotphase.data",
    "Flow": "dotphase.theory.flow",
    "FlowPoint": "dotphase.theory.flow",
    "Interrupted": "dotphase.errors",
    "InvalidInput": "dotphase.errors",
    "Iteration": "dotphase.fixedpoint",
    "Landscape": "dotphase.theory.landscape",
    "MessagePassing": "dotphase.message_passing.run",
    "MixedTeacher": "dotphase.paper",
    "Model": "dotphase.model",
    "Overlaps": "dotphase.theory.overlaps",
    "Run": "dotphase.training.result",
    "Solution": "dotphase.theory.solution",
    "Spectrum": "dotphase.spectrum",
    "Study": "dotphase.study.spec",
    "Training": "dotphase.training.result",
    "amp": "dotphase.message_passing.run",
    "basin_shares": "dotphase.study.basins",
    "basins": "dotphase.study.basins",
    "bayes_curve": "dotphase.study.bayes",
    "bayes_optimal": "dotphase.theory.bayes",
    "baseline": "dotphase.baselines.fit",
    "continue_in_alpha": "dotphase.theory.solve",
    "curvature": "dotphase.training.hessian",
    "Critical": "dotphase.theory.critical",
    "branch_end": "dotphase.theory.critical",
    "critical": "dotphase.theory.critical",
    "critical_line": "dotphase.theory.critical",
    "curve": "dotphase.study.curve",
    "descent": "dotphase.study.descent",
    "diagram": "dotphase.study.diagram",
    "flow_field": "dotphase.theory.flow",
    "flow_fixed_points": "dotphase.theory.flow",
    "plot_diagram": "dotphase.figures.diagram",
    "landscape": "dotphase.theory.landscape",
    "linear_test_error": "dotphase.baselines",
    "plot_basins": "dotphase.figures.basins",
    "plot_bayes": "dotphase.figures.bayes",
    "plot_curve": "dotphase.figures.curve",
    "plot_histogram_attention": "dotphase.figures.histogram_attention",
    "plot_histogram_curves": "dotphase.figures.histogram_curves",
    "plot_histogram_distances": "dotphase.figures.histogram_distances",
    "plot_histogram_emergence": "dotphase.figures.histogram_emergence",
    "plot_histogram_landscape": "dotphase.figures.histogram_landscape",
    "plot_iterations": "dotphase.figures.iterations",
    "plot_mechanisms": "dotphase.figures.scatter",
    "population_flow": "dotphase.theory.flow",
    "positional_semantic": "dotphase.paper",
    "positional_semantic_length": "dotphase.lengths",
    "read_spec": "dotphase.study.spec",
    "read_status": "dotphase.study.journal",
    "read_study": "dotphase.study.execute",
    "ridge_regression": "dotphase.glm",
    "run_study": "dotphase.study.execute",
    "sample": "dotphase.data",
    "softmax_attention": "dotphase.paper",
    "scalar_link": "dotphase.glm",
    "solve": "dotphase.theory.solve",
    "solve_many": "dotphase.theory.solve",
    "train": "dotphase.training.run",
    "untied": "dotphase.training.untied",
}

#: Parts of the package that are public under their own name.
_PARTS = ("histogram", "spectrum")

__all__ = sorted([*_HOMES, *_PARTS, "__version__"])

try:
    __version__ = version("dotphase")
except PackageNotFoundError:  # run from source
    __version__ = "0.0.0+source"


def __getattr__(name: str) -> Any:
    if name in _PARTS:
        return import_module(f"dotphase.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'dotphase' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
