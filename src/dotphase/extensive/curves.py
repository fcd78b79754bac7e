"""Wide attention along alpha: theory, and theory beside trained students."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict, Unpack

import numpy as np
import xarray as xr

from dotphase.config import validation
from dotphase.extensive.solve import LONG_NAMES, VALUES, solve
from dotphase.extensive.training import QUANTITIES, train
from dotphase.extensive.transitions import onset
from dotphase.storage.labels import add_labels
from dotphase.storage.provenance import provenance


class Options(TypedDict, total=False):
    """Arguments of `dotphase.wide.solve` besides alpha."""

    rho: float
    ridge: float
    length: int
    omega: float


def curve(alphas: Sequence[float], **options: Unpack[Options]) -> xr.Dataset:
    """Solve the state evolution along alpha.

    Parameters
    ----------
    alphas : sequence of float
        Increasing sentences per squared dimension.
    **options
        rho, ridge, length, omega: as for `dotphase.wide.solve`.

    Returns
    -------
    xarray.Dataset
        Every number of a solution over ``alpha`` with its ``_stderr``, and the ``onset``.

    Examples
    --------
    >>> dataset = dp.wide.curve([0.1, 0.4], rho=0.5, ridge=0.1)
    >>> bool(dataset["test_error"][0] > dataset["test_error"][1])
    True
    """
    grid = validation.grid("alphas", alphas)
    rows = [solve(alpha=alpha, **options) for alpha in grid.tolist()]
    values = {name: ("alpha", [getattr(row, name) for row in rows]) for name in VALUES}
    errors = {f"{name}_stderr": ("alpha", [row.stderr[name] for row in rows]) for name in VALUES}
    converged = {"converged": ("alpha", [row.converged for row in rows])}
    dataset = xr.Dataset(
        values | errors | converged, {"alpha": grid}, provenance(**options, onset=onset(**options))
    )
    return _labeled(dataset)


def compare(
    alphas: Sequence[float], d: int, *, seeds: int = 4, seed: int = 0, **options: Unpack[Options]
) -> xr.Dataset:
    """Solve the state evolution and train students on the same grid of alpha.

    Parameters
    ----------
    alphas, **options
        As for `dotphase.wide.curve`.
    d, seeds, seed
        As for `dotphase.wide.train`.

    Returns
    -------
    xarray.Dataset
        Dimensions ``source`` ("theory", "training") and ``alpha``; every quantity with its
        ``_stderr``. Training differs by terms of order 1/d; the shift by terms of order d^-1/2.

    Examples
    --------
    >>> both = dp.wide.compare([0.7], d=20, seeds=2, rho=0.5, ridge=0.1)
    >>> both["test_error"].dims
    ('source', 'alpha')
    """
    validation.integer("seeds", seeds, at_least=2)
    theory = curve(alphas, **options)
    runs = [
        train(alpha=alpha, d=d, seeds=seeds, seed=seed, **options)
        for alpha in theory["alpha"].values.tolist()
    ]
    variables: dict[str, Any] = {}
    for name in QUANTITIES:
        for suffix, table in (("", "mean"), ("_stderr", "stderr")):
            trained = [getattr(run, table)[name] for run in runs]
            both = np.stack([theory[name + suffix].values, trained])
            variables[name + suffix] = (("source", "alpha"), both)
    coordinates = {"source": ["theory", "training"], "alpha": theory["alpha"].values}
    attributes = theory.attrs | {"d": d, "seeds": seeds, "seed": seed}
    return _labeled(xr.Dataset(variables, coordinates, attributes))


def _labeled(dataset: xr.Dataset) -> xr.Dataset:
    """Add long names; alpha counts sentences per squared dimension here."""
    dataset = add_labels(dataset)
    dataset["alpha"].attrs["long_name"] = "sample complexity α = n/d²"
    for name, text in LONG_NAMES.items():
        if name in dataset:
            dataset[name].attrs.update(long_name=text, units="1")
    return dataset
