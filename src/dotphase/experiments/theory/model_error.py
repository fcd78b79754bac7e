"""Estimated error of replica symmetry, next to the change by one step of symmetry breaking."""

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import numpy as np
import xarray as xr

from dotphase.model.paper import positional_semantic
from dotphase.runtime.progress import Progress
from dotphase.theory.model_error import LAWS
from dotphase.theory.one_rsb.result import Broken
from dotphase.theory.settings import SolverFields, SolverSettings
from dotphase.theory.solve import solve_many_broken

#: Parameters of a point, with their defaults.
PARAMETERS = {"length": 2, "omega": 0.3, "sigma": 0.5, "ridge": 0.01}


def model_error(
    points: Sequence[Mapping[str, Any]],
    *,
    inner: int | None = None,
    progress: Progress = None,
    settings: SolverSettings | None = None,
    **changes: Unpack[SolverFields],
) -> xr.Dataset:
    """Estimate and measure the relative changes by replica symmetry breaking.

    Parameters
    ----------
    points : sequence of mappings
        ``alpha``, ``branch`` and parameters of `dotphase.positional_semantic`.
    progress : bool or callable, optional
        Receives an event with each solution (`dotphase.results.ProgressEvent`).
    inner, settings, **changes
        As for `dotphase.solve` with breaking.

    Returns
    -------
    xarray.Dataset
        Dimensions ``point`` and ``result``: ``estimated``, ``measured`` and its ``stderr``; NaN
        where there is no broken solution or the result vanishes by symmetry.

    Examples
    --------
    >>> point = {"omega": 0.1, "alpha": 0.75, "branch": "positional"}
    >>> changes = dp.analysis.model_error([point], inner=9, log2_points=12)
    >>> figure = dp.plot.model_error(changes, "model_error.png")
    """
    jobs = []
    for point in points:
        parameters = {name: point[name] for name in PARAMETERS if name in point}
        jobs.append((positional_semantic(**parameters), point["alpha"], point["branch"]))
    solutions = solve_many_broken(
        jobs, inner=inner, progress=progress, settings=settings, **changes
    )
    return table(points, [relative_changes(broken) for broken in solutions])


def relative_changes(broken: Broken) -> dict[str, tuple[float, float, float]]:
    """Estimate, measured change and its error for every result, relative to its value."""
    symmetric = broken.symmetric
    relative = {}
    for name in LAWS:
        value = abs(symmetric.value(name)) if broken.on_branch else np.nan
        value = value if value > 0 else np.nan
        changes = (symmetric.model_error[name], broken.shift[name], broken.shift_stderr[name])
        relative[name] = (changes[0] / value, changes[1] / value, changes[2] / value)
    return relative


def table(
    points: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Sequence[float]]]
) -> xr.Dataset:
    """Collect points and their relative changes in a labeled dataset."""
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
