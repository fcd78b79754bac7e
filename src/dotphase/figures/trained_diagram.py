"""Phase diagram of trained students, with alpha_c of theory and training."""

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from dotphase.figures.parts.lines import ALPHA, LOSS_GAP, SYMBOLS, add_hollow_entry
from dotphase.figures.parts.maps import LOSS_GAP_COLORS, LOSS_GAP_MEANING, max_abs, plot_map
from dotphase.figures.parts.style import MAP_INK, ink_color, new_figure, page_color


def trained_diagram(means: xr.Dataset, lines: xr.Dataset, path: str | Path | None = None) -> Any:
    """Plot the loss difference of trained students, and alpha_c, where it changes sign.

    The left map shows alpha_c of the theory as a line and alpha_c of the trained students as
    points. The right panel shows their relative difference. Open markers: the theory is not
    trusted there.

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
    >>> omega = {"omega": [0.2, 0.4]}  # with alpha_c from dp.critical:
    >>> theory = {"alpha_c": [0.946, 1.770], "alpha_c_stderr": [0.002, 0.002], "trusted": [0, 1]}
    >>> lines = xr.Dataset({name: ("omega", row) for name, row in theory.items()}, omega)
    >>> means = dp.analysis.means_over_seeds(runs)
    >>> figure = dp.plot.trained_diagram(means, lines, "trained_diagram.png")
    """
    parameter = str(means.attrs["parameter"])
    theory = lines.interp({parameter: means[parameter]})
    ratio = means["alpha_c"] / theory["alpha_c"]
    error = ratio * np.hypot(
        means["alpha_c_stderr"] / means["alpha_c"], theory["alpha_c_stderr"] / theory["alpha_c"]
    )
    trusted = (theory["trusted"] == 1).values
    with new_figure(path, 1, 2, size=(9.6, 3.9), sharey=True) as (figure, (map_axis, axis)):
        field = 1e3 * means["loss_difference"]
        limit = max_abs(field)
        mesh = plot_map(map_axis, field, parameter, LOSS_GAP_COLORS, -limit, limit)
        bounds = map_axis.axis()
        map_axis.set_title(LOSS_GAP + rf"  $[10^{{-3}}]$, trained, $d = {means.attrs['d']}$")
        bar = figure.colorbar(mesh, ax=map_axis)
        bar.ax.set_title(LOSS_GAP_MEANING[0], fontsize="small")
        bar.ax.set_xlabel(LOSS_GAP_MEANING[1], fontsize="small")
        line = {"color": MAP_INK, "label": r"$\alpha_c$, replica symmetric"}
        map_axis.plot(lines["alpha_c"], lines[parameter], **line)
        map_axis.set(xlabel=ALPHA, ylabel=f"${SYMBOLS.get(parameter, parameter)}$")
        axis.axvline(0, color=ink_color(), lw=0.7)
        style = {"fmt": "o", "ms": 4, "lw": 1.0}
        for mask, filled in ((trusted, True), (~trusted, False)):
            points, noise = means.isel({parameter: mask}), error[mask]
            map_axis.errorbar(
                points["alpha_c"], points[parameter], xerr=points["alpha_c_stderr"], color=MAP_INK,
                mfc=MAP_INK if filled else "#FFFFFF", label="trained" if filled else None, **style,
            )  # fmt: skip
            axis.errorbar(
                100 * (ratio[mask] - 1), points[parameter], xerr=100 * noise, color=ink_color(),
                mfc=ink_color() if filled else page_color(), **style,
            )  # fmt: skip
        axis.set(xlabel=r"$\alpha_c$: trained relative to theory  [%]")
        axis.set_ylabel(map_axis.get_ylabel())
        if not trusted.all():
            add_hollow_entry(axis, color=ink_color())
            axis.legend()
        map_axis.axis(bounds)
        map_axis.legend(loc="upper left", facecolor="#FFFFFF", labelcolor=MAP_INK)
    return figure
