"""Experiments: curves, phase diagrams and grids of trained students, as labeled datasets."""
