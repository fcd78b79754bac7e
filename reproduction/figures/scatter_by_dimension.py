"""Final overlaps and test errors of runs, one panel for each dimension."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from dotphase.plot.style import (
    MARKERS,
    ORDER_PARAMETERS,
    TEST_ERROR,
    ink_color,
    new_figure,
    overlap_scale,
    plot_against_dimension,
    plot_overlap_plane,
    use_scientific_ticks,
)


def plot_scatter_by_dimension(
    theory: xr.Dataset, runs: xr.Dataset, path: str | Path | None = None
) -> Any:
    """Every run in the plane of m and theta, colored by d, and the test error against d.

    Parameters
    ----------
    theory : xarray.Dataset
        The two branches at one alpha; stars, and lines.
    runs : xarray.Dataset
        Dimensions ``d``, ``start`` and ``seed``.
    """
    scale, d = overlap_scale(theory), runs["d"].values
    color_range = {"vmin": np.log10(d[0]), "vmax": np.log10(d[-1]) + 1e-9}
    with new_figure(path, 1, 2, size=(8.6, 3.7)) as (figure, (plane, error)):
        markers = None
        for start in ORDER_PARAMETERS:
            ends = runs.sel(start=start).transpose("d", "seed")
            markers = plane.scatter(
                ends["m"] / scale, ends["theta"] / scale, s=10, marker=MARKERS[start], alpha=0.8,
                c=np.repeat(np.log10(d), ends.sizes["seed"]), cmap="viridis", lw=0, zorder=2,
                **color_range,
            )  # fmt: skip
            plane.plot([], [], MARKERS[start], ls="none", color=ink_color(), label=f"{start} start")
        plot_overlap_plane(plane, theory, scale)
        plane.set_ylabel(r"$|\theta|/\sigma^2$")
        figure.colorbar(markers, ax=plane, label=r"$\log_{10} d$")
        plot_against_dimension(error, theory, runs, dict.fromkeys(ORDER_PARAMETERS, "test_error"))
        error.set_ylabel(TEST_ERROR)
        use_scientific_ticks(error)
        plane.legend(loc="upper right")
        error.legend()
    return figure
