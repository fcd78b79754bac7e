"""Finite dimension: data sets, their exact loss and test error, starts and overlaps."""
