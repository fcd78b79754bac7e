"""Building blocks for figures of your own in the style of the package.

`new_figure` makes a figure in this style and writes it to a file. `plot_branch`,
`plot_seed_means`, ... draw parts of the datasets of `dotphase.curve`, `dotphase.grid` and
`dotphase.diagram` into Matplotlib axes. Colors, markers and labels are those of `dotphase.plot`.
"""

from dotphase._lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
