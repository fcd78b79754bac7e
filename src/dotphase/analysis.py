"""Further analyses: ends of branches, landscapes, attention matrices, special models."""

from dotphase.dmft.online_settings import OnlineSettings
from dotphase.dmft.settings import DynamicsSettings
from dotphase.experiments.comparison.with_theory import with_theory
from dotphase.experiments.dynamics.descent_limits import training_starts
from dotphase.experiments.dynamics.filled_diagram import fill_diagram
from dotphase.experiments.dynamics.outcomes import outcomes
from dotphase.experiments.theory.attention import attention_matrices
from dotphase.experiments.theory.model_error import model_error
from dotphase.experiments.training.averages import (
    fitted_alpha_c,
    mean_and_error,
    means_over_seeds,
    paired_difference,
    trained_alpha_c,
)
from dotphase.experiments.training.basins import basin_shares
from dotphase.experiments.training.real_tokens import train_on_table
from dotphase.model.glm import ridge_regression
from dotphase.model.latent import Latent
from dotphase.model.linear_layer import linear_test_error
from dotphase.numerics.crossings import first_rise, locate_fall
from dotphase.numerics.quadrature import Rule, gauss_hermite
from dotphase.study.merge import merge_studies
from dotphase.theory.fixed_rule import solve_on_rule
from dotphase.theory.landscape import landscape
from dotphase.theory.one_rsb.critical import broken_critical
from dotphase.theory.solve import complexity, continue_in_alpha, solve_many_broken
from dotphase.theory.spinodal import branch_end

__all__ = [
    "DynamicsSettings",
    "Latent",
    "OnlineSettings",
    "Rule",
    "attention_matrices",
    "basin_shares",
    "branch_end",
    "broken_critical",
    "complexity",
    "continue_in_alpha",
    "fill_diagram",
    "first_rise",
    "fitted_alpha_c",
    "gauss_hermite",
    "landscape",
    "linear_test_error",
    "locate_fall",
    "mean_and_error",
    "means_over_seeds",
    "merge_studies",
    "model_error",
    "outcomes",
    "paired_difference",
    "ridge_regression",
    "solve_many_broken",
    "solve_on_rule",
    "train_on_table",
    "trained_alpha_c",
    "training_starts",
    "with_theory",
]
