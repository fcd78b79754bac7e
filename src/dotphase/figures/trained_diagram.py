"""A phase diagram by training, with its crossing line beside that of the theory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from dotphase.figures.parts.lines import ALPHA, LOSS_GAP, SYMBOLS, add_hollow_entry
from dotphase.figures.parts.maps import max_abs, plot_map
from dotphase.figures.parts.style import MAP_INK, ink_color, new_figure, page_color


def trained_diagram(means: xr.Dataset, lines: xr.Dataset, path: str | Path | None = None) -> Any:
    """Difference of the training losses of trained students, and where it changes sign.

    Left the map, with alpha_c of the theory as a line and that of the trained students as
    points; right how far the points are from the line. Hollow where the theory is not to be
    trusted.

    Parameters
    ----------
    means : xarray.Dataset
        From `dotphase.analysis.means_over_seeds`.
    lines : xarray.Dataset
        ``alpha_c``, ``alpha_c_stderr`` and ``trusted`` of the theory against the parameter.

    Examples
    --------
    >>> import xarray as xr
    >>> runs = dp.grid(dp.positional_semantic, [1.5, 2.0], [0.2, 0.4], d=40, seeds=2)
    >>> omega = {"omega": [0.2, 0.4]}  # and there, from dp.critical:
    >>> theory = {"alpha_c": [0.946, 1.770], "alpha_c_stderr": [0.002, 0.002], "trusted": [0, 1]}
    >>> lines = xr.Dataset({name: ("omega", row) for name, row in theory.items()}, omega)
    >>> means = dp.analysis.means_over_seeds(runs)
    >>> figure = dp.plot.trained_diagram(means, lines, "trained_diagram.png")
    """
    parameter = str(means.attrs["parameter"])
    symbol = f"${SYMBOLS.get(parameter, parameter)}$"
    theory = lines.interp({parameter: means[parameter]})
    ratio = means["alpha_c"] / theory["alpha_c"]
    error = ratio * np.hypot(
        means["alpha_c_stderr"] / means["alpha_c"], theory["alpha_c_stderr"] / theory["alpha_c"]
    )
    trusted = (theory["trusted"] == 1).values
    with new_figure(path, 1, 2, size=(9.6, 3.9), sharey=True) as (figure, axes):
        field = 1e3 * means["loss_difference"]
        limit = max_abs(field)
        mesh = plot_map(axes[0], field, parameter, "PuOr", -limit, limit)
        bounds = axes[0].axis()
        label = LOSS_GAP + rf"  $[10^{{-3}}]$, trained, $d = {means.attrs['d']}$"
        figure.colorbar(mesh, ax=axes[0], label=label)
        line = r"$\alpha_c$, replica symmetric"
        axes[0].plot(lines["alpha_c"], lines[parameter], color=MAP_INK, label=line)
        axes[0].set(xlabel=ALPHA, ylabel=symbol)
        axes[1].axvline(0, color=ink_color(), lw=0.7)
        for some, filled in ((trusted, True), (~trusted, False)):
            style = {"fmt": "o", "ms": 4, "lw": 1.0}
            part, noise = means.isel({parameter: some}), error[some]
            axes[0].errorbar(
                part["alpha_c"], part[parameter], xerr=part["alpha_c_stderr"], color=MAP_INK,
                mfc=MAP_INK if filled else "#FFFFFF", label="trained" if filled else None, **style,
            )  # fmt: skip
            axes[1].errorbar(
                100 * (ratio[some] - 1), part[parameter], xerr=100 * noise, color=ink_color(),
                mfc=ink_color() if filled else page_color(), **style,
            )  # fmt: skip
        axes[1].set_xlabel(r"$\alpha_c$ trained less theory  [%]")
        if not trusted.all():
            add_hollow_entry(axes[1], color=ink_color())
            axes[1].legend()
        axes[0].axis(bounds)
        axes[0].legend(loc="upper left", facecolor="#FFFFFF", labelcolor=MAP_INK)
    return figure
