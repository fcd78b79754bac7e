"""Finite dimension: data sets, their exact loss and test error, initialization and overlaps."""
