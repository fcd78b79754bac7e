"""The public names: what `import dotphase as dp` offers, each declared here and nowhere else."""

from dotphase import histogram as histogram
from dotphase._numerics.fixed_point import Iteration as Iteration
from dotphase.baselines.fit import Baseline as Baseline
from dotphase.baselines.fit import baseline as baseline
from dotphase.errors import Interrupted as Interrupted
from dotphase.errors import InvalidInput as InvalidInput
from dotphase.experiments.basins import basin_shares as basin_shares
from dotphase.experiments.basins import basins as basins
from dotphase.experiments.bayes import bayes_curve as bayes_curve
from dotphase.experiments.curve import curve as curve
from dotphase.experiments.descent import descent as descent
from dotphase.experiments.diagram import diagram as diagram
from dotphase.experiments.grid import grid as grid
from dotphase.experiments.message_passing import amp as amp
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
from dotphase.finite.data import Dataset as Dataset
from dotphase.finite.data import sample as sample
from dotphase.finite.linear import linear_test_error as linear_test_error
from dotphase.finite.runs import Run as Run
from dotphase.message_passing.result import MessagePassing as MessagePassing
from dotphase.message_passing.settings import MessagePassingSettings as MessagePassingSettings
from dotphase.model import spectrum as spectrum
from dotphase.model.attention import softmax_attention as softmax_attention
from dotphase.model.definition import Model as Model
from dotphase.model.glm import ridge_regression as ridge_regression
from dotphase.model.glm import scalar_link as scalar_link
from dotphase.model.paper import MixedTeacher as MixedTeacher
from dotphase.model.paper import positional_semantic as positional_semantic
from dotphase.model.paper import positional_semantic_length as positional_semantic_length
from dotphase.model.spectrum import Spectrum as Spectrum
from dotphase.model.untied import untied as untied
from dotphase.sweep.journal import read_status as read_status
from dotphase.sweep.run import read_study as read_study
from dotphase.sweep.run import run_study as run_study
from dotphase.sweep.spec import Study as Study
from dotphase.sweep.spec import read_spec as read_spec
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
from dotphase.training.result import Training as Training
from dotphase.training.run import train as train
from dotphase.training.settings import TrainingSettings as TrainingSettings

__version__: str
