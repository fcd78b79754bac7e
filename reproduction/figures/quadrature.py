"""alpha_c against the number of nodes, for fixed rules and for Sobol points."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from dotphase.plot.style import COLORS, ink_color, new_figure


def plot_quadrature(
    points: xr.Dataset, rules: xr.Dataset, published: float, path: str | Path | None = None
) -> Any:
    """alpha_c against the quadrature of the averages.

    Parameters
    ----------
    points : xarray.Dataset
        ``alpha_c`` and ``alpha_c_stderr`` against ``nodes``, from Sobol points.
    rules : xarray.Dataset
        ``alpha_c`` and ``nodes`` of fixed rules, the first those of the released procedure.
    published : float
        The published value.
    """
    with new_figure(path, size=(5.2, 3.5)) as (figure, axis):
        axis.axhline(published, color=ink_color(), lw=1, ls=":", label="published")
        nodes, alpha_c, color = rules["nodes"], rules["alpha_c"], COLORS["linear"]
        color_of = {"color": COLORS["positional"], "label": "released procedure"}
        axis.plot(nodes[0], alpha_c[0], "^", ms=7, **color_of)
        axis.plot(nodes[1:], alpha_c[1:], "s--", lw=0.9, color=color, label="Gauss-Hermite")
        axis.errorbar(
            points["nodes"], points["alpha_c"], 2 * np.asarray(points["alpha_c_stderr"]), fmt="o-",
            color=COLORS["semantic"], capsize=2, lw=1.2, label="Sobol, two standard errors",
        )  # fmt: skip
        axis.set(xscale="log", xlabel="nodes", ylabel=r"$\alpha_c$ at $\omega = 0.3$")
        axis.legend()
    return figure
