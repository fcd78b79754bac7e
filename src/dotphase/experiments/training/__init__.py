"""Experiments with trained students: grids, basins of attraction, averages over seeds."""
