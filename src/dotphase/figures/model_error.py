"""Estimated error of replica symmetry against one step of symmetry breaking."""

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from dotphase.figures.parts.style import COLORS, MARKERS, ink_color, new_figure

#: Results in each panel, by its title.
PANELS = {
    "training loss": ("train_loss",),
    "overlap (theta or m)": ("theta", "m"),
    "test error": ("test_error",),
}


def model_error(dataset: xr.Dataset, path: str | Path | None = None) -> Any:
    """Plot measured against estimated relative changes.

    Filled markers have sigma and ridge of the paper.

    Examples
    --------
    >>> point = {"omega": 0.1, "alpha": 0.75, "branch": "positional"}
    >>> errors = dp.analysis.model_error([point], inner=9, log2_points=12)
    >>> figure = dp.plot.model_error(errors, "model_error.png")
    """
    paper = (dataset["sigma"] == 0.5) & (dataset["ridge"] == 0.01) & (dataset["length"] == 2)
    with new_figure(path, 1, 3, size=(10.4, 3.4)) as (figure, axes):
        for axis, (title, results) in zip(axes, PANELS.items(), strict=True):
            for name in results:
                for branch in ("semantic", "positional"):
                    rows = dataset.sel(result=name)
                    measured = np.abs(rows["measured"].values)
                    selected = (dataset["branch"].values == branch) & (measured > 0)
                    for group, face in ((paper, COLORS[branch]), (~paper, "none")):
                        points = selected & group.values
                        axis.errorbar(
                            rows["estimated"].values[points], measured[points],
                            np.minimum(rows["stderr"].values[points], 0.9 * measured[points]),
                            ls="none", marker=MARKERS[branch], ms=4, lw=0.6,
                            color=COLORS[branch], mfc=face,
                        )  # fmt: skip
            low, high = 1e-6, 1.0
            axis.plot([low, high], [low, high], color=ink_color(), lw=0.8)
            axis.fill_between([low, high], [low / 2, high / 2], [2 * low, 2 * high],
                              color=ink_color(), alpha=0.1, lw=0)  # fmt: skip
            axis.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high), title=title)
            axis.set(xlabel="estimated from the jumps", ylabel="one step of breaking")
    return figure
