"""A closer look at a model: where branches end, its landscape, its attention, its limits."""

from dotphase.experiments.attention import attention_matrices
from dotphase.experiments.basins import basin_shares
from dotphase.experiments.beside import with_theory
from dotphase.experiments.fill import fill
from dotphase.experiments.model_error import model_error
from dotphase.experiments.outcomes import outcomes
from dotphase.experiments.trained import means_over_seeds
from dotphase.finite.linear import linear_test_error
from dotphase.model.glm import ridge_regression
from dotphase.model.latent import Latent
from dotphase.theory.breaking.critical import broken_critical
from dotphase.theory.ends import branch_end
from dotphase.theory.landscape import landscape
from dotphase.theory.solve import complexity, continue_in_alpha, solve_many_broken

__all__ = [
    "Latent",
    "attention_matrices",
    "basin_shares",
    "branch_end",
    "broken_critical",
    "complexity",
    "continue_in_alpha",
    "fill",
    "landscape",
    "linear_test_error",
    "means_over_seeds",
    "model_error",
    "outcomes",
    "ridge_regression",
    "solve_many_broken",
    "with_theory",
]
