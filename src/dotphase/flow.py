"""Gradient flow of the overlaps with very many sentences, and gradient descent at finite d."""

from dotphase.experiments.training.descent import descent
from dotphase.theory.gradient_flow import flow_field as field
from dotphase.theory.gradient_flow import flow_fixed_points as fixed_points
from dotphase.theory.gradient_flow import population_flow as follow

__all__ = ["descent", "field", "fixed_points", "follow"]
