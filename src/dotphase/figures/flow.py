"""Population gradient flow of the overlaps, compared with gradient descent."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from dotphase.figures.parts.lines import add_hollow_entry
from dotphase.figures.parts.style import (
    COLORS,
    MARKERS,
    empty_color,
    ink_color,
    new_figure,
    page_color,
)

#: Branch that gives the color of each overlap, and its label.
OVERLAP_LINES = {
    "m": ("positional", "$m$"),
    "theta": ("semantic", r"$\theta$"),
    "q": ("mixed", "$q$"),
}


def flow(
    fields: Mapping[float, xr.Dataset],
    paths: xr.Dataset,
    runs: xr.Dataset,
    path: str | Path | None = None,
) -> Any:
    """Plot flow fields with their fixed points, and the overlaps against time.

    Parameters
    ----------
    fields : mapping of alpha to xarray.Dataset
        One panel each, with ``m_speed``, ``theta_speed`` and ``loss`` over theta and m, and the
        fixed points ``point_m``, ``point_theta`` and ``point_stable``.
    paths : xarray.Dataset
        Overlaps of the flow over tau.
    runs : xarray.Dataset
        Overlaps of gradient descent and their standard errors ``_stderr``, over tau.

    Examples
    --------
    >>> import numpy as np
    >>> import xarray as xr
    >>> m, theta = np.linspace(0, 0.5, 4), np.linspace(0, 0.3, 4)
    >>> speed, other, loss, _ = dp.flow.field(dp.positional_semantic(), m, theta)
    >>> over = ("theta", "m")
    >>> field = xr.Dataset({"m_speed": (over, speed), "theta_speed": (over, other),
    ...     "loss": (over, loss)}, {"m": m, "theta": theta})
    >>> for name in ("m", "theta", "stable"):
    ...     field[f"point_{name}"] = ("point", [0.26])
    >>> names = ("m", "theta", "q", "m_stderr", "theta_stderr", "q_stderr")
    >>> along = xr.Dataset({name: ("tau", [0.0, 0.1]) for name in names}, {"tau": [0.0, 1.0]})
    >>> figure = dp.plot.flow({2.0: field}, along, along, "flow.png")
    """
    panels = len(fields) + 1
    with new_figure(path, 1, panels, size=(3.5 * panels, 3.3)) as (figure, axes):
        for axis, (alpha, field) in zip(axes, fields.items(), strict=False):
            _plot_field(axis, field)
            ridge = "no ridge" if np.isinf(alpha) else rf"ridge/$\alpha$ as at $\alpha$ = {alpha:g}"
            axis.set_title(f"flow at least $q$, {ridge}")
        axes[0].legend(loc="upper right")
        last = axes[-1]
        for name, (kind, label) in OVERLAP_LINES.items():
            color = COLORS[kind]
            last.plot(paths["tau"], paths[name], color=color, label=f"{label}, flow")
            last.errorbar(
                runs["tau"], runs[name], runs[f"{name}_stderr"], color=color, ls="none",
                marker=MARKERS[kind], mfc=page_color(), capsize=2, lw=1,
            )  # fmt: skip
        add_hollow_entry(last, "gradient descent", ink_color())
        last.set(xlabel=r"time $\tau$ (step size x steps x $\alpha$)", ylabel="overlaps")
        # Room for the legend above the curves.
        last.set_ylim(0, 1.45 * last.get_ylim()[1])
        last.set_title("population flow against training")
        last.legend(loc="upper left", ncols=2)
    return figure


def _plot_field(axis: Any, field: xr.Dataset) -> None:
    """Plot streamlines, contours of equal loss and fixed points."""
    m, theta = field["m"].values, field["theta"].values
    axis.contour(m, theta, field["loss"], levels=14, colors=empty_color(), linewidths=0.8, zorder=1)
    axis.streamplot(
        m, theta, field["m_speed"].values, field["theta_speed"].values, color=ink_color(),
        density=0.9, linewidth=0.7, arrowsize=0.8, broken_streamlines=True,
    )  # fmt: skip
    points = (field[f"point_{name}"].values for name in ("m", "theta", "stable"))
    for x, y, stable in zip(*points, strict=True):
        kind = ("mixed" if x > 0 else "semantic") if y > 0 else "positional" if x > 0 else ""
        color = COLORS[kind or "uninformed"]
        axis.plot(
            x, y, marker="o", ms=10, color=color, mfc=color if stable else page_color(), mew=2,
            ls="none", zorder=5, clip_on=False,
        )  # fmt: skip
    axis.plot([], [], color=empty_color(), lw=1.2, label="equal loss")
    axis.plot([], [], "o", ms=8, color=ink_color(), label="minimum")
    axis.plot(
        [], [], "o", ms=8, color=ink_color(), mfc=page_color(), mew=1.6, label="saddle or maximum"
    )
    axis.set(xlim=m[[0, -1]], ylim=theta[[0, -1]], xlabel="$m$", ylabel=r"$\theta$")
    axis.grid(False)
