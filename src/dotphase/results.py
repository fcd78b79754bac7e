"""What functions return, for annotations and for ``isinstance``; nobody has to make them."""

from dotphase.baselines.fit import Baseline
from dotphase.finite.data import Dataset
from dotphase.finite.runs import Run
from dotphase.mean_field.result import Trajectory
from dotphase.message_passing.result import MessagePassing
from dotphase.theory.bayes import BayesOptimal
from dotphase.theory.breaking.critical import BrokenCritical
from dotphase.theory.breaking.evolution import BrokenOverlaps
from dotphase.theory.breaking.result import Broken, Complexity
from dotphase.theory.critical import Critical
from dotphase.theory.critical_search import Transition
from dotphase.theory.dimension import AtDimension
from dotphase.theory.ends import BranchEnd
from dotphase.theory.flow import Flow, FlowPoint
from dotphase.theory.landscape import Landscape
from dotphase.theory.posterior import NumericalBayes
from dotphase.theory.solution import Solution
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
    "Complexity",
    "Critical",
    "Curvature",
    "Dataset",
    "Flow",
    "FlowPoint",
    "Landscape",
    "MessagePassing",
    "NumericalBayes",
    "Run",
    "Solution",
    "Training",
    "Trajectory",
    "Transition",
]
