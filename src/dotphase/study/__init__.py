"""Grids of points, as labelled datasets."""
