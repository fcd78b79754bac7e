"""Training at finite dimension: starts, optimizers, runs over many seeds, curvature."""
