"""Columns of maps over alpha and omega: theory above, training below."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import xarray as xr

from dotphase.figures.parts import maps
from dotphase.figures.parts.lines import ALPHA
from dotphase.figures.parts.style import MAP_INK, ink_color, new_figure


def map_columns(
    columns: Sequence[maps.Panel],
    theory: xr.Dataset,
    runs: xr.Dataset,
    lines: xr.Dataset | None = None,
    path: str | Path | None = None,
) -> Any:
    """Plot columns of maps with the critical lines, hatched where the theory is not trusted.

    Parameters
    ----------
    columns : sequence of Panel
        Fields of theory and training.
    theory : xarray.Dataset
        From `dotphase.diagram`.
    runs : xarray.Dataset
        From `dotphase.grid`.
    lines : xarray.Dataset, optional
        ``alpha_c`` and ``alpha_l`` against omega; by default those of `theory`.

    Examples
    --------
    >>> from dotphase.figures.parts.maps import gain_panel
    >>> cells = dp.diagram(dp.positional_semantic, [1.0, 2.0], [0.2, 0.4], log2_points=12)
    >>> runs = dp.grid(dp.positional_semantic, [1.5, 2.0], [0.2, 0.4], d=40, seeds=2)
    >>> gain = gain_panel(cells, runs)
    >>> figure = dp.plot.map_columns([gain, gain], cells, runs, path="panels.png")
    """
    size = (4.7 * len(columns), 6.6)
    shared = {"sharex": True, "sharey": True, "squeeze": False}
    with new_figure(path, 2, len(columns), size=size, **shared) as (figure, axes):
        any_untrusted = False
        for column, panel in zip(axes.T, columns, strict=True):
            mesh = _plot_fields(column, panel, theory if lines is None else lines)
            if columns[0].comparison:
                column[0].set_facecolor(maps.SINGLE_BRANCH_COLORS["none"])
            if panel.comparison:
                maps.plot_single_branch_cells(column[0], panel.theory, theory, "omega")
            any_untrusted = maps.hatch_untrusted(column[0], theory, "omega")
            if panel.reached is not None:
                maps.mark_filled_cells(column[0], panel.reached, "omega")
            bar = figure.colorbar(mesh, ax=column)
            bar.ax.set_title(panel.meaning[0], fontsize="small")
            bar.ax.set_xlabel(panel.meaning[1], fontsize="small")
            column[0].set_title(panel.title)
            column[1].set_xlabel(ALPHA)
        first = axes[0, 0]
        if any_untrusted:
            maps.add_hatch_entry(first)
        first.set_ylabel(r"$\omega$   (theory)")
        axes[1, 0].set_ylabel(rf"$\omega$   (training, $d = {runs.attrs['d']}$)")
        if bool(columns[0].theory.isnull().any()) and not columns[0].comparison:
            maps.add_missing_entry(first, mec=ink_color(), mew=0.4)
        # The legend is white on every page, like the maps whose dark lines it explains.
        style = {"facecolor": "#FFFFFF", "labelcolor": MAP_INK, "ncols": 3, "framealpha": 1.0}
        handles, labels = first.get_legend_handles_labels()
        if handles:
            figure.legend(handles, labels, loc="outside upper left", **style)
        first.set_xlim(float(theory["alpha"].min()), float(theory["alpha"].max()))
        first.set_ylim(float(theory["omega"].min()), float(theory["omega"].max()))
    return figure


def _plot_fields(axes: Any, panel: maps.Panel, lines: xr.Dataset) -> Any:
    """Plot theory and training on one color scale, with the critical lines."""
    high = maps.max_abs(panel.theory, panel.trained)
    low = -high if panel.centered else 0.0
    for axis, field in zip(axes, (panel.theory, panel.trained), strict=True):
        mesh = maps.plot_map(axis, field, "omega", panel.colors, low, high)
        maps.plot_critical_lines(axis, lines, "omega")
    return mesh
