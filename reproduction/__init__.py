"""The reproduction: every figure and table of the paper, compared number by number."""
