"""Figures of the reproduction: one file for each, drawn with `dotphase.plot.style`."""
