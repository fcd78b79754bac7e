"""Wide attention: spectrum of the student, and onset of its semantic part."""

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from dotphase.figures.parts.style import COLORS, ink_color, new_figure

#: Histogram bins, and dashes of the ridges.
BINS = 25
DASHES = ("-", "--", "-.", ":")


def wide(
    eigenvalues: Any, solution: Any, diagram: xr.Dataset, path: str | Path | None = None
) -> Any:
    """Plot trained eigenvalues beside the predicted density, and the onset over omega.

    Parameters
    ----------
    eigenvalues : array
        Of trained students S, from ``dp.wide.train(...).eigenvalues``.
    solution : WideSolution
        From `dotphase.wide.solve`, of the same student.
    diagram : xarray.Dataset
        From `dotphase.wide.phase_diagram`. Students are positional (orange) below the lines, and
        have a semantic part (blue) above.

    Examples
    --------
    >>> case = {"alpha": 0.7, "rho": 0.5, "ridge": 0.1}
    >>> runs, solution = dp.wide.train(d=20, seeds=2, **case), dp.wide.solve(**case)
    >>> diagram = dp.wide.phase_diagram([0.0, 0.3], [0.1], rho=0.5)
    >>> figure = dp.plot.wide(runs.eigenvalues, solution, diagram, "wide.png")
    """
    with new_figure(path, 1, 2, size=(8.4, 3.3)) as (figure, (left, right)):
        values = np.ravel(eigenvalues)
        x, density = solution.spectrum()
        top = max(float(values.max(initial=1e-3)), float(x.max(initial=0.0)))
        # The zero eigenvalues are left out: their share is 1 - rank.
        positive = values[values > 1e-3 * top]
        weights = np.full(positive.size, BINS / (values.size * top))
        left.hist(positive, bins=BINS, range=(0, top), weights=weights, color=COLORS["random"],
                  alpha=0.6, label="trained")  # fmt: skip
        left.plot(x, density, color=COLORS["semantic"], label=r"theory, $d \to \infty$")
        left.set(xlabel=r"eigenvalue of $S = QQ^\top$", ylabel="density", xlim=(0, None))
        omega = diagram["omega"]
        for ridge, dashes in zip(diagram["ridge"].values.tolist(), DASHES * 9, strict=False):
            line = diagram["alpha_c"].sel(ridge=ridge)
            right.plot(omega, line, color=ink_color(), ls=dashes, label=rf"$\lambda = {ridge:g}$")
        # Regions that are the same for all ridges.
        lowest, highest = diagram["alpha_c"].min("ridge"), diagram["alpha_c"].max("ridge")
        low, high = 0.7 * float(lowest.min()), 1.4 * float(highest.max())
        right.fill_between(omega, low, lowest, color=COLORS["positional"], alpha=0.25, lw=0)
        right.fill_between(omega, highest, high, color=COLORS["semantic"], alpha=0.25, lw=0)
        right.set(xlabel=r"$\omega$", ylabel=r"onset $\alpha_c = n/d^2$", yscale="log")
        right.margins(0)
        for axis in (left, right):
            axis.legend()
    return figure
