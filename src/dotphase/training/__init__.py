"""Training at finite dimension: starts, optimisers, runs over many seeds, curvature."""
