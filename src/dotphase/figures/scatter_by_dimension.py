"""Where runs end in the plane of the overlaps, and their test error, by dimension."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from dotphase.figures.parts.lines import TEST_ERROR, overlap_scale, scientific
from dotphase.figures.parts.style import COLOURS, MARKERS, drawing, ink


def scatter_by_dimension(
    theory: xr.Dataset, runs: xr.Dataset, path: str | Path | None = None
) -> Any:
    """Every run in the plane of m and theta, coloured by d, and the test error against d.

    Parameters
    ----------
    theory : xarray.Dataset
        The two branches at one alpha; stars, and lines.
    runs : xarray.Dataset
        Dimensions ``d``, ``start`` and ``seed``.

    Examples
    --------
    >>> branches = dp.curve(dp.positional_semantic(), [1.0, 2.0], log2_points=12)
    >>> runs = dp.grid(dp.positional_semantic, [1.5, 2.0], [0.2, 0.4], d=40, seeds=2)
    >>> runs = runs.isel(omega=0, alpha=1, drop=True).expand_dims(d=[40])
    >>> figure = dp.plot.scatter_by_dimension(branches.isel(alpha=1), runs, "scatter.png")
    """
    scale, d = overlap_scale(theory), runs["d"].values
    with drawing(path, 1, 2, size=(8.6, 3.5)) as (figure, (plane, error)):
        shown = None
        for start in runs["start"].values:
            some = runs.sel(start=start)
            colour = np.broadcast_to(np.log10(d)[:, None], some["m"].transpose("d", "seed").shape)
            shown = plane.scatter(
                some["m"].transpose("d", "seed"), some["theta"].transpose("d", "seed") / scale,
                c=colour, s=10, marker=MARKERS[str(start)], cmap="viridis", alpha=0.8, lw=0,
                vmin=np.log10(d[0]), vmax=np.log10(d[-1]) + 1e-9,
            )  # fmt: skip
            entry = {"marker": MARKERS[str(start)], "color": ink(), "label": f"{start} start"}
            plane.plot([], [], ls="none", **entry)
            point, name = theory.sel(branch=start), str(start)
            plane.plot(
                float(point["m"]), float(point["theta"]) / scale, "*", ms=14, color=COLOURS[name],
                mec=ink(), mew=0.8,
            )  # fmt: skip
            values = some["test_error"]
            error.axhline(float(point["test_error"]), color=COLOURS[name], lw=1.3)
            error.errorbar(
                d, values.mean("seed"), values.std("seed", ddof=1), capsize=2, lw=1,
                color=COLOURS[name], fmt=MARKERS[name], label=f"{name} start, spread over runs",
            )  # fmt: skip
        plane.plot([], [], "*", ms=11, color="none", mec=ink(), label="minima of the theory")
        figure.colorbar(shown, ax=plane, label=r"$\log_{10} d$")
        plane.set(xlabel="$|m|$", ylabel=r"$|\theta|/\sigma^2$")
        error.set(xscale="log", xlabel="dimension $d$ (lines: theory)", ylabel=TEST_ERROR)
        scientific(error)
        plane.legend(loc="upper right")
        error.legend()
    return figure
