"""Number of minima of a branch, by their training loss."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.ticker import NullFormatter

from dotphase.figures.parts.style import COLORS, ink_color, new_figure
from dotphase.theory.one_rsb.result import Complexity


def complexity(curve: Complexity, path: str | Path | None = None) -> Any:
    """Plot the complexity against the Parisi parameter, F, and the complexity against the loss.

    Examples
    --------
    >>> model = dp.positional_semantic(omega=0.1)
    >>> curve = dp.analysis.complexity(model, 0.75, "positional", inner=9, log2_points=12)
    >>> figure = dp.plot.complexity(curve, "complexity.png")
    """
    color = COLORS.get(curve.branch, ink_color())
    gain = 1e6 * (curve.free_energy - curve.free_energy[0])
    above = 1e6 * (curve.energy - curve.free_energy.max())
    # The first value of y stands for zero, where the complexity is undefined.
    positive = slice(1, None)
    # Beyond the maximum of the complexity, y is the slope of the number of minima in the loss.
    decreasing = slice(int(np.argmax(curve.complexity)), None)
    ranges = (positive, positive, decreasing)
    panels = (
        (curve.parisi, 1e4 * curve.complexity, 1e4 * curve.stderr["complexity"]),
        (curve.parisi, gain, 1e6 * curve.stderr["free_energy"]),
        (above, 1e4 * curve.complexity, 1e4 * curve.stderr["complexity"]),
    )
    labels = (
        ("Parisi parameter $y$", r"complexity $\times 10^4$"),
        ("Parisi parameter $y$", r"$F(y) - F(0)$, $\times 10^6$"),
        (r"training loss above the lowest, $\times 10^6$", r"complexity $\times 10^4$"),
    )
    with new_figure(path, 1, 3, size=(10.4, 3.2)) as (figure, axes):
        for axis, (x, y, error), (xlabel, ylabel), part in zip(
            axes, panels, labels, ranges, strict=True
        ):
            axis.errorbar(
                np.asarray(x)[part], np.asarray(y)[part], np.asarray(error)[part],
                color=color, marker="o", ms=3, lw=1.2, capsize=2,
            )  # fmt: skip
            axis.axhline(0, color=ink_color(), lw=0.7)
            # The values set the scale, since error bars of few points may exceed them.
            limit = 1.6 * float(np.max(np.abs(np.asarray(y)[part])))
            axis.set(xlabel=xlabel, ylabel=ylabel, ylim=(-limit, limit))
        for axis in axes[:2]:
            axis.set_xscale("log")
            axis.xaxis.set_minor_formatter(NullFormatter())
        axes[0].set_title(f"{curve.branch}, alpha = {curve.alpha:g}", fontsize=9)
    return figure
