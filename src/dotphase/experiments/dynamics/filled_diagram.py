"""Gradient descent in the cells of a phase diagram where state evolution has no branch.

A student trained from the start of a missing branch ends somewhere else, and in the limit of large
d the dynamics predicts where.
"""

from collections.abc import Callable
from typing import Unpack

import numpy as np
import xarray as xr

from dotphase.config.settings import replace_fields
from dotphase.dmft.settings import DynamicsFields, DynamicsSettings
from dotphase.experiments.dynamics.descent_limits import DESCENT, descend, training_starts
from dotphase.model import Model
from dotphase.runtime.progress import Progress, ProgressCounter

#: About 1% precision in losses.
SETTINGS = DynamicsSettings(log2_ensemble=10, repetitions=2, rtol=None)
#: Dimension of the students with the same starts.
DIMENSION = 1000
#: Quantities of a limit: their names in the diagram and their descriptions.
REACHED = {
    "train_loss": ("reached_loss", "training loss"),
    "test_error": ("reached_error", "test error"),
}


def fill_diagram(
    dataset: xr.Dataset,
    family: Callable[[float], Model],
    *,
    d: int = DIMENSION,
    progress: Progress = None,
    settings: DynamicsSettings | None = None,
    **changes: Unpack[DynamicsFields],
) -> xr.Dataset:
    """Follow gradient descent where a branch of a phase diagram is missing.

    Parameters
    ----------
    dataset : xarray.Dataset
        From `dotphase.diagram`.
    family : callable
        As for `dotphase.diagram`.
    d : int
        Dimension of the positional start: a unit vector, ``m = 1/sqrt d``.
    progress : bool or callable, optional
        Receives an event with each limit (`dotphase.results.ProgressEvent`).
    settings, **changes
        As for `dotphase.dynamics`; ensembles are small by default.

    Returns
    -------
    xarray.Dataset
        The diagram with ``reached_loss`` and ``reached_error``: training loss and test error
        after 127 steps of 4 in the limit of large d, from the start with the name of the branch;
        NaN where the branch exists. ``reached_difference`` is the semantic minus the positional
        loss, with these instead of missing minima; NaN if neither is missing, or the other branch
        is a saddle.

    Examples
    --------
    >>> cells = dp.diagram(dp.positional_semantic, [1.0, 2.0], [0.2, 0.4], log2_points=12)
    >>> filled = dp.analysis.fill_diagram(cells, dp.positional_semantic)  # nothing is missing
    >>> bool(filled["reached_loss"].isnull().all())
    True
    """
    parameter = str(dataset.attrs["parameter"])
    settings = replace_fields(settings or SETTINGS, changes)
    missing = dataset["kind"] == "missing"
    columns = {name: xr.full_like(dataset["train_loss"], np.nan) for name in REACHED}
    counter = ProgressCounter("descents", int(missing.sum()), progress)
    for value in dataset[parameter].values:
        cells = missing.sel({parameter: value})
        if not bool(cells.any()):
            continue
        model = family(float(value))
        starts = training_starts(model, [str(name) for name in dataset["branch"].values], d)
        for name, start in starts.items():
            for alpha in cells["alpha"].values[cells.sel(branch=name).values]:
                limit = descend(model, float(alpha), start, settings=settings, **DESCENT)
                for quantity, column in columns.items():
                    cell = {"branch": name, parameter: value, "alpha": alpha}
                    column.loc[cell] = limit.values[quantity]
                counter.tick(limit)
    condition = " where the branch is missing: gradient descent from its start, large d"
    for quantity, (name, text) in REACHED.items():
        column = columns[quantity].assign_attrs(description=text + condition)
        dataset = dataset.assign({name: column})
    return dataset.assign(reached_difference=_difference(dataset, missing))


def _difference(dataset: xr.Dataset, missing: xr.DataArray) -> xr.DataArray:
    loss = dataset["train_loss"].where(dataset["kind"] != "saddle")
    loss = loss.where(~missing, dataset["reached_loss"]).where(missing.any("branch"))
    gap = loss.sel(branch="semantic", drop=True) - loss.sel(branch="positional", drop=True)
    text = "semantic minus positional training loss, gradient descent where a minimum is missing"
    return gap.assign_attrs(description=text)


def filled_difference(dataset: xr.Dataset) -> tuple[xr.DataArray, xr.DataArray]:
    """Loss difference with filled cells, and a mask of the cells that gradient descent filled."""
    gap = dataset["loss_difference"]
    if "reached_difference" not in dataset:
        return gap, xr.zeros_like(gap, dtype=bool)
    reached = dataset["reached_difference"].transpose(*gap.dims)
    return gap.fillna(reached), gap.isnull() & reached.notnull()
