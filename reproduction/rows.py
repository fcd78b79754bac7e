"""Numbers with errors, and rows that compare theory with training."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from dotphase.analysis import mean_and_error
from reproduction.verdict import Row, between_engines

#: The overlap that identifies a branch, and the start that leads to it.
OVERLAP = {"semantic": "theta", "positional": "m"}
#: Losses that are compared besides the overlap.
LOSSES = ("train_loss", "test_error")

Number = tuple[float, float]


def number(point: xr.Dataset, name: str) -> Number:
    """A value of a dataset without dimensions, and its standard error."""
    return float(point[name]), float(point[f"{name}_stderr"])


def over_seeds(values: xr.DataArray) -> Number:
    """Mean over seeds and its standard error, as two numbers."""
    mean, error = mean_and_error(values)
    return float(mean), float(error)


def over_runs(values: Float[np.ndarray, " runs"]) -> Number:
    """Mean over runs and its standard error, zero for a single run."""
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    return float(np.mean(values)), float(error)


def format_number(number: Number, digits: int = 4, missing: str = "none") -> str:
    """Format a number with its error, or return `missing` if it is not finite."""
    value, error = number
    return f"{value:.{digits}f} ± {error:.{digits}f}" if np.isfinite(value) else missing


def usable(point: xr.Dataset) -> xr.DataArray:
    """True where the branch exists and the theory is trusted."""
    exists: xr.DataArray = point["trusted"].astype(bool) & point["on_branch"].astype(bool)
    return exists


def finite_size(runs: xr.Dataset) -> float:
    """Share by which numbers may differ at finite d: a few times 1/d, see `concentration`."""
    return 10 / float(runs.attrs["d"])


def theory_and_training(
    theory: xr.Dataset,
    runs: xr.Dataset,
    at: Mapping[str, Any],
    *,
    share: float,
    alphas: Iterable[float] | None = None,
    losses: bool = False,
) -> list[Row]:
    """Compare the overlap of each branch, and optionally its losses, with trained students.

    Points at which the theory is not trusted get the verdict "outside the theory": the report shows
    the difference and claims no agreement.

    Parameters
    ----------
    theory, runs : xarray.Dataset
        Over branch and alpha; over alpha, start and seed.
    at : mapping
        Conditions of all rows.
    share : float
        Share of a number that may lie between the two besides their errors.
    alphas : iterable of float, optional
        Alphas to compare at; by default the last alpha of the runs.
    losses : bool
        True to compare training loss and test error as well.
    """
    compared = [float(runs["alpha"][-1])] if alphas is None else alphas
    rows = []
    for branch, overlap in OVERLAP.items():
        for alpha in map(float, compared):
            point = theory.sel(branch=branch).sel(alpha=alpha, method="nearest")
            students = runs.sel(start=branch).sel(alpha=alpha, method="nearest")
            if not bool(point["on_branch"]):
                continue
            for name in (*(LOSSES if losses else ()), overlap):
                conditions = {**at, "branch": branch, "alpha": alpha}
                pair = number(point, name), over_seeds(students[name])
                seeds = students.sizes["seed"]
                row = between_engines(name, conditions, *pair, share=share, seeds=seeds)
                rows.append(row if bool(usable(point)) else row.outside(_model_error(point, name)))
    return rows


def _model_error(point: xr.Dataset, name: str) -> str:
    """Reason for distrust, with the estimated model error of the theory."""
    estimate = f"{name}_model_error"
    if estimate in point and np.isfinite(float(point[estimate])) and float(point[estimate]) > 0:
        share = 100 * float(point[estimate]) / abs(float(point[name]))
        return f"not trusted: symmetry breaking moves it by {share:.2g}%"
    return "not trusted: the minimum is unstable or the proximal map jumps"


def differences(
    runs: Sequence[xr.Dataset],
    quantities: Iterable[str],
    at: Mapping[str, Any],
    origin: str,
    **share: Any,
) -> list[Row]:
    """Compare two kinds of runs on the same data sets, whose fluctuations cancel.

    `origin` is the name of the first kind.
    """
    first, second = runs
    rows = []
    for name in quantities:
        gap, error = over_seeds(second[name] - first[name])
        mean = float(first[name].mean("seed"))
        ours = (mean + gap, error)
        pair, seeds = ((mean, 0.0), ours), first.sizes["seed"]
        rows.append(between_engines(name, dict(at), *pair, origin, seeds=seeds, **share))
    return rows
