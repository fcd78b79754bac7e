"""What gradient descent finds in the cells of a phase diagram where state evolution has no branch.

A student trained from the start of a branch that does not exist ends somewhere all the same, and in
the limit of large d the dynamics says where.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Unpack

import numpy as np
import xarray as xr

from dotphase.config.settings import replace_fields
from dotphase.dmft.settings import DynamicsFields, DynamicsSettings
from dotphase.experiments.dynamics.descent_limits import DESCENT, End, descend, starts_of_training
from dotphase.model import Model

#: Precision of every cell: about 1% in losses.
SETTINGS = DynamicsSettings(log2_ensemble=10, repetitions=2, rtol=None)
#: Dimension of the students whose starts are taken.
DIMENSION = 1000
#: What is noted of an end: its name in the diagram, and what it is.
REACHED = {
    "train_loss": ("reached_loss", "training loss"),
    "test_error": ("reached_error", "test error"),
}


def fill(
    dataset: xr.Dataset,
    family: Callable[[float], Model],
    *,
    d: int = DIMENSION,
    progress: Callable[[End], None] | None = None,
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
        Dimension whose positional start is taken: a unit vector, ``m = 1/sqrt d``.
    progress : callable, optional
        Called with each end as it is reached.
    settings, **changes
        As for `dotphase.dynamics`; ensembles are small by default.

    Returns
    -------
    xarray.Dataset
        The diagram with ``reached_loss`` and ``reached_error``, NaN where the branch exists:
        training loss and test error after 127 steps of 4 in the limit of large d, from the start
        that is called like the branch. ``reached_difference`` is the semantic less the positional
        loss with these in place of missing minima; NaN where there is nothing to fill, or the
        other branch is a saddle.

    Examples
    --------
    >>> cells = dp.diagram(dp.positional_semantic, [1.0, 2.0], [0.2, 0.4], log2_points=12)
    >>> filled = dp.analysis.fill(cells, dp.positional_semantic)  # nothing is missing here
    >>> bool(filled["reached_loss"].isnull().all())
    True
    """
    parameter = str(dataset.attrs["parameter"])
    settings = replace_fields(settings or SETTINGS, changes)
    missing = dataset["kind"] == "missing"
    found = {part: xr.full_like(dataset["train_loss"], np.nan) for part in REACHED}
    for value in dataset[parameter].values:
        cells = missing.sel({parameter: value})
        if not bool(cells.any()):
            continue
        model = family(float(value))
        starts = starts_of_training(model, [str(name) for name in dataset["branch"].values], d)
        for name, start in starts.items():
            for alpha in cells["alpha"].values[cells.sel(branch=name).values]:
                end = descend(model, float(alpha), start, settings=settings, **DESCENT)
                place = {"branch": name, parameter: value, "alpha": alpha}
                for part, values in found.items():
                    values.loc[place] = end.values[part]
                if progress is not None:
                    progress(end)
    where = " where the branch is missing: gradient descent from its start, large d"
    for part, (called, text) in REACHED.items():
        dataset = dataset.assign({called: found[part].assign_attrs(description=text + where)})
    return dataset.assign(reached_difference=_difference(dataset, missing))


def _difference(dataset: xr.Dataset, missing: xr.DataArray) -> xr.DataArray:
    loss = dataset["train_loss"].where(dataset["kind"] != "saddle")
    loss = loss.where(~missing, dataset["reached_loss"]).where(missing.any("branch"))
    gap = loss.sel(branch="semantic", drop=True) - loss.sel(branch="positional", drop=True)
    text = "semantic less positional training loss, gradient descent where a minimum is missing"
    return gap.assign_attrs(description=text)


def filled_difference(dataset: xr.Dataset) -> tuple[xr.DataArray, xr.DataArray]:
    """The difference of the losses as far as it is known, and which cells are by descent."""
    gap = dataset["loss_difference"]
    if "reached_difference" not in dataset:
        return gap, xr.zeros_like(gap, dtype=bool)
    reached = dataset["reached_difference"].transpose(*gap.dims)
    return gap.fillna(reached), gap.isnull() & reached.notnull()
