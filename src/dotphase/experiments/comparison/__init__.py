"""Comparisons of theory, training and message passing."""
