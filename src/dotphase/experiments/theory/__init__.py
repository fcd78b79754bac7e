"""Experiments with the theory: curves, phase diagrams, attention."""
