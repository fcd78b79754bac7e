"""Phase diagrams as maps with the critical lines on top."""

from pathlib import Path
from typing import Any

import xarray as xr
from matplotlib.colors import Colormap

from dotphase.experiments.dynamics.filled_diagram import filled_difference
from dotphase.figures.parts import maps
from dotphase.figures.parts.lines import ALPHA, LOSS_GAP, SYMBOLS
from dotphase.figures.parts.style import ink_color, new_figure, page_color
from dotphase.theory.critical_line import CriticalLine

#: Field, label, color map, and the meaning of its upper and lower half.
PANELS: tuple[tuple[str, str, str | Colormap, tuple[str, str]], ...] = (
    ("loss_difference", LOSS_GAP, maps.LOSS_GAP_COLORS, maps.LOSS_GAP_MEANING),
    (
        "test_gain",
        r"$\epsilon_{\rm lin} - \epsilon_g$ of the lowest minimum",
        maps.GAIN_COLORS,
        maps.GAIN_MEANING,
    ),
)


def diagram(dataset: xr.Dataset | CriticalLine, path: str | Path | None = None) -> Any:
    """Plot a phase diagram, or the critical lines of `dotphase.critical_line`.

    The upper row shows the difference of the training losses of the two minima and the gain in test
    error over the linear layer, both in units of 1e-3, with alpha_c and alpha_l as lines. Dots mark
    cells in which the limit of gradient descent (`dotphase.analysis.fill_diagram`) replaces a
    missing minimum. The lower row shows the kind of fixed point of each branch: the model error of
    a minimum as a color, and markers for saddles and for undetermined and missing fixed points.

    Parameters
    ----------
    dataset : xarray.Dataset or CriticalLine
        From `dotphase.diagram` or `dotphase.critical_line`.

    Examples
    --------
    >>> cells = dp.diagram(dp.positional_semantic, [1.0, 2.0], [0.2, 0.4], log2_points=12)
    >>> figure = dp.plot.diagram(cells, "diagram.png")
    """
    if isinstance(dataset, CriticalLine):
        return _draw_critical_line(dataset, path)
    parameter = str(dataset.attrs["parameter"])
    gap, reached = filled_difference(dataset)
    with new_figure(path, 2, 2, size=(9.6, 7.4), sharex=True, sharey=True) as (figure, axes):
        for axis, (name, title, colors, (upper, lower)) in zip(axes[0], PANELS, strict=True):
            field = 1e3 * (gap if name == "loss_difference" else dataset[name])
            limit = maps.max_abs(field)
            mesh = maps.plot_map(axis, field, parameter, colors, -limit, limit)
            bar = figure.colorbar(mesh, ax=axis, label=title + r"  $[10^{-3}]$")
            bar.ax.set_title(upper, fontsize="small")
            bar.ax.set_xlabel(lower, fontsize="small")
            maps.plot_critical_lines(axis, dataset, parameter, ink_color())
        maps.mark_filled_cells(axes[0, 0], reached, parameter)
        maps.add_missing_entry(axes[0, 0], "a branch is no minimum (see below)", mec="none")
        if bool(dataset["test_gain"].isnull().any()):
            maps.add_missing_entry(axes[0, 1], "no minimum (see below)", mec="none")
            axes[0, 1].legend(loc="lower right", bbox_to_anchor=(1, 1))
        axes[0, 0].legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
        for axis, name in zip(axes[1], dataset["branch"].values, strict=True):
            mesh = maps.plot_kind_map(axis, dataset.sel(branch=name), parameter)
            figure.colorbar(mesh, ax=axis, label="minimum: model error [%]", extend="max")
            axis.set_title(f"{name} branch")
            axis.set_xlabel(ALPHA)
        maps.add_kind_entries(axes[1, 1])
        figure.legend(*axes[1, 1].get_legend_handles_labels(), loc="outside lower center", ncols=4)
        for axis in axes[:, 0]:
            axis.set_ylabel(f"${SYMBOLS.get(parameter, parameter)}$")
    return figure


def _draw_critical_line(line: CriticalLine, path: str | Path | None) -> Any:
    """Draw alpha_c and alpha_l with standard errors, alpha_c hollow where it is not trusted."""
    lines, name = line.dataset().sortby(line.parameter), line.parameter
    with new_figure(path, size=(4.8, 3.7)) as (figure, axis):
        for variable, style, label in maps.CRITICAL_LINES:
            axis.errorbar(
                lines[variable], lines[name], xerr=lines[f"{variable}_stderr"], ls=style,
                marker="o", ms=4, color=ink_color(), label=label,
            )  # fmt: skip
        doubtful = lines["alpha_c"].where(~lines["alpha_c_trusted"])
        if bool(doubtful.notnull().any()):
            hollow = {"ms": 4, "mfc": page_color(), "color": ink_color(), "zorder": 3}
            axis.plot(doubtful, lines[name], "o", label="theory not trusted", **hollow)
        axis.set(xlabel=ALPHA, ylabel=f"${SYMBOLS.get(name, name)}$")
        axis.legend()
    return figure
