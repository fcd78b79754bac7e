"""The estimated error of replica symmetry beside what one step of breaking changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import numpy as np
import xarray as xr

from dotphase.model.paper import positional_semantic
from dotphase.theory.model_error import LAWS
from dotphase.theory.one_rsb.result import Broken
from dotphase.theory.settings import SolverFields
from dotphase.theory.solve import solve_many_broken

#: What a point is, and what it is where it does not say so.
PARAMETERS = {"length": 2, "omega": 0.3, "sigma": 0.5, "ridge": 0.01}


def model_error(
    points: Sequence[Mapping[str, Any]],
    *,
    inner: int | None = None,
    **changes: Unpack[SolverFields],
) -> xr.Dataset:
    """Estimate and measure what breaking replica symmetry changes, relative to the values.

    Parameters
    ----------
    points : sequence of mappings
        ``alpha``, ``branch`` and parameters of `dotphase.positional_semantic`.
    inner, **changes
        As for `dotphase.solve` with breaking.

    Returns
    -------
    xarray.Dataset
        Dimensions ``point`` and ``result``: ``estimated``, ``measured`` and its ``stderr``; NaN
        where breaking was not found or the result vanishes by symmetry.

    Examples
    --------
    >>> point = {"omega": 0.1, "alpha": 0.75, "branch": "positional"}
    >>> found = dp.analysis.model_error([point], inner=9, log2_points=12)
    >>> figure = dp.plot.model_error(found, "model_error.png")
    """
    problems = []
    for point in points:
        others = {name: point[name] for name in PARAMETERS if name in point}
        problems.append((positional_semantic(**others), point["alpha"], point["branch"]))
    solved = solve_many_broken(problems, inner=inner, **changes)
    return table(points, [relative_changes(each) for each in solved])


def relative_changes(broken: Broken) -> dict[str, tuple[float, float, float]]:
    """Estimate, measured change and its error of every result, relative to its value."""
    symmetric = broken.symmetric
    found = {}
    for name in LAWS:
        value = abs(symmetric.value(name)) if broken.on_branch else np.nan
        value = value if value > 0 else np.nan
        changes = (symmetric.model_error[name], broken.shift[name], broken.shift_stderr[name])
        found[name] = (changes[0] / value, changes[1] / value, changes[2] / value)
    return found


def table(
    points: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Sequence[float]]]
) -> xr.Dataset:
    """Points and their relative changes as a labelled dataset."""
    values = np.asarray([[row[name] for name in LAWS] for row in rows], float)
    names = ("estimated", "measured", "stderr")
    labels = {**PARAMETERS, "alpha": np.nan, "branch": ""}
    coordinates = {
        name: ("point", [point.get(name, usual) for point in points])
        for name, usual in labels.items()
    }
    return xr.Dataset(
        {name: (("point", "result"), values[:, :, k]) for k, name in enumerate(names)},
        coords={"result": list(LAWS), **coordinates},
        attrs={"about": "relative changes by one step of replica symmetry breaking"},
    )
