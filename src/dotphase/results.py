"""Classes of results, for annotations and ``isinstance``, and helpers to report results."""

from dotphase.baselines.fit import Baseline
from dotphase.config.formatting import format_value
from dotphase.config.serialization import to_json_types
from dotphase.dmft.online import OnePass
from dotphase.dmft.result import Trajectory
from dotphase.finite_d.datasets import Dataset
from dotphase.finite_d.runs import Run
from dotphase.gamp.result import MessagePassing
from dotphase.runtime.progress import ProgressEvent
from dotphase.storage.provenance import describe_model, provenance
from dotphase.storage.result_cache import CachedResult
from dotphase.storage.run_config import config_hash
from dotphase.theory.bayes import BayesOptimal
from dotphase.theory.critical import Critical
from dotphase.theory.critical_line import CriticalLine
from dotphase.theory.finite_d_corrections import AtDimension
from dotphase.theory.gradient_flow import Flow, FlowPoint
from dotphase.theory.landscape import Landscape
from dotphase.theory.layered_posterior import LayeredBayes
from dotphase.theory.numerical_posterior import NumericalBayes
from dotphase.theory.one_rsb.critical import BrokenCritical
from dotphase.theory.one_rsb.result import Broken, Complexity
from dotphase.theory.one_rsb.state_evolution import BrokenOverlaps
from dotphase.theory.optimal import Optimum
from dotphase.theory.sensitivity import Derivative
from dotphase.theory.solution import Solution
from dotphase.theory.spinodal import BranchEnd
from dotphase.theory.transitions import Transition
from dotphase.training.hessian import Curvature
from dotphase.training.result import Training

__all__ = [
    "AtDimension",
    "Baseline",
    "BayesOptimal",
    "BranchEnd",
    "Broken",
    "BrokenCritical",
    "BrokenOverlaps",
    "CachedResult",
    "Complexity",
    "Critical",
    "CriticalLine",
    "Curvature",
    "Dataset",
    "Derivative",
    "Flow",
    "FlowPoint",
    "Landscape",
    "LayeredBayes",
    "MessagePassing",
    "NumericalBayes",
    "OnePass",
    "Optimum",
    "ProgressEvent",
    "Run",
    "Solution",
    "Training",
    "Trajectory",
    "Transition",
    "config_hash",
    "describe_model",
    "format_value",
    "provenance",
    "to_json_types",
]
