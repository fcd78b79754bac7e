"""Declarations of the public names, loaded at first use.

Each comment begins a group of the API reference.
"""

# Model
from dotphase.model.definition import Model as Model
from dotphase.model.attention import softmax_attention as softmax_attention
from dotphase.model.glm import scalar_link as scalar_link
from dotphase.model.load import load_model as load_model
from dotphase.model.paper import positional_semantic as positional_semantic
from dotphase.model.paper import positional_semantic_length as positional_semantic_length
from dotphase.model.spectrum import Spectrum as Spectrum
from dotphase.model.untied import untied as untied

# Theory
from dotphase.numerics.fixed_point import Iteration as Iteration
from dotphase.experiments.theory.attention import attention as attention
from dotphase.experiments.theory.curve import curve as curve
from dotphase.experiments.theory.diagram import diagram as diagram
from dotphase.dmft.run import dynamics as dynamics
from dotphase.dmft.online import online as online
from dotphase.theory.critical import critical as critical
from dotphase.theory.critical_line import critical_line as critical_line
from dotphase.theory.optimal import optimal as optimal
from dotphase.theory.overlaps import Overlaps as Overlaps
from dotphase.theory.settings import SolverSettings as SolverSettings
from dotphase.theory.solve import solve as solve
from dotphase.theory.solve import solve_many as solve_many

# Finite dimension
from dotphase.baselines.fit import baseline as baseline
from dotphase.experiments.training.basins import basins as basins
from dotphase.finite_d.initialization import start_from as start_from
from dotphase.finite_d.datasets import sample as sample
from dotphase.experiments.comparison.compare import compare as compare
from dotphase.experiments.training.grid import grid as grid
from dotphase.experiments.comparison.amp import amp as amp
from dotphase.training.hessian import curvature as curvature
from dotphase.training.run import train as train
from dotphase.training.settings import TrainingSettings as TrainingSettings
from dotphase.gamp.settings import AmpSettings as AmpSettings

# Studies
from dotphase.study.journal import read_status as read_status
from dotphase.study.run import read_study as read_study
from dotphase.study.run import run_study as run_study
from dotphase.study.spec import Study as Study
from dotphase.study.spec import read_spec as read_spec

# Files
from dotphase.storage.results import load as load

# Settings
from dotphase.runtime.compilation_cache import keep_compiled as keep_compiled

# Errors
from dotphase.errors import Interrupted as Interrupted
from dotphase.errors import InvalidInput as InvalidInput

# Modules
from dotphase import analysis as analysis
from dotphase import bayes as bayes
from dotphase import custom_training as custom_training
from dotphase import embeddings as embeddings
from dotphase import flow as flow
from dotphase import heads as heads
from dotphase import histogram as histogram
from dotphase import plot as plot
from dotphase import results as results
from dotphase import wide as wide
from dotphase.model import spectrum as spectrum

__version__: str
