"""The explorer: a page on which the phase transition is under your hands."""
