"""A closer look at a model: where branches end, its landscape, its attention, its limits."""

from dotphase.experiments.comparison.with_theory import with_theory
from dotphase.experiments.dynamics.filled_diagram import fill_diagram
from dotphase.experiments.dynamics.outcomes import outcomes
from dotphase.experiments.theory.attention import attention_matrices
from dotphase.experiments.theory.model_error import model_error
from dotphase.experiments.training.averages import means_over_seeds
from dotphase.experiments.training.basins import basin_shares
from dotphase.experiments.training.real_tokens import train_on_table
from dotphase.model.glm import ridge_regression
from dotphase.model.latent import Latent
from dotphase.model.linear_layer import linear_test_error
from dotphase.theory.landscape import landscape
from dotphase.theory.one_rsb.critical import broken_critical
from dotphase.theory.solve import complexity, continue_in_alpha, solve_many_broken
from dotphase.theory.spinodal import branch_end

__all__ = [
    "Latent",
    "attention_matrices",
    "basin_shares",
    "branch_end",
    "broken_critical",
    "complexity",
    "continue_in_alpha",
    "fill_diagram",
    "landscape",
    "linear_test_error",
    "means_over_seeds",
    "model_error",
    "outcomes",
    "ridge_regression",
    "solve_many_broken",
    "train_on_table",
    "with_theory",
]
