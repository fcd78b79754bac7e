"""Figures, each one function of a dataset."""
