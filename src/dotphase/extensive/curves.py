"""Wide attention along alpha: theory, and theory beside trained students."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from dotphase.config import validation
from dotphase.extensive import QUANTITIES
from dotphase.extensive.solve import solve
from dotphase.extensive.training import MAX_D, train
from dotphase.extensive.transitions import onset
from dotphase.storage.labels import add_labels
from dotphase.storage.provenance import provenance


def curve(alphas: Sequence[float], **options: Any) -> xr.Dataset:
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
    grid = validation.grid("alphas", alphas).tolist()
    solutions = [solve(alpha=alpha, **options) for alpha in grid]
    dataset = _along_alpha(solutions)
    return dataset.assign_attrs(provenance(**options, onset=onset(**options)))


def compare(
    alphas: Sequence[float], d: int, *, seeds: int = 4, seed: int = 0, **options: Any
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
        ``_stderr``, and ``converged`` (for training: all students). Training differs by terms of
        order 1/d; the shift by terms of order d^-1/2.

    Examples
    --------
    >>> both = dp.wide.compare([0.7], d=20, seeds=2, rho=0.5, ridge=0.1)
    >>> both["test_error"].dims
    ('source', 'alpha')
    """
    sizes = {"d": d, "seeds": validation.integer("seeds", seeds, at_least=2), "seed": seed}
    validation.integer("d", d, at_least=2, at_most=MAX_D)
    validation.integer("length", options.get("length", 2), at_least=2)
    theory = curve(alphas, **options)
    runs = [train(alpha=alpha, **sizes, **options) for alpha in theory["alpha"].values.tolist()]
    training = _along_alpha(runs)
    source = xr.Variable("source", ["theory", "training"])
    both = xr.concat([theory[list(training)], training], source, combine_attrs="override")
    return both.assign_attrs(theory.attrs | sizes)


def _along_alpha(results: Sequence[Any]) -> xr.Dataset:
    """Tabulate means and errors, with their long names."""
    variables: dict[str, Any] = {}
    for name in results[0].stderr:
        variables[name] = ("alpha", [result.mean[name] for result in results])
        variables[f"{name}_stderr"] = ("alpha", [result.stderr[name] for result in results])
    variables["converged"] = ("alpha", [bool(np.all(result.converged)) for result in results])
    dataset = add_labels(xr.Dataset(variables, {"alpha": [result.alpha for result in results]}))
    dataset["alpha"].attrs["long_name"] = "sample complexity α = n/d²"
    for name in results[0].stderr:
        dataset[name].attrs.update(long_name=QUANTITIES[name], units="1")
    return dataset
