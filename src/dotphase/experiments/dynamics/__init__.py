"""Experiments with the dynamics of gradient descent."""
