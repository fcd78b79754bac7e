"""What a grid of trained students says: means over data sets, and where training losses cross."""

from __future__ import annotations

import numpy as np
import xarray as xr

from dotphase.experiments.training.grid import FIELDS
from dotphase.numerics.crossings import last_fall

#: What is averaged over data sets.
QUANTITIES = tuple(name for name in FIELDS if name not in ("gradient_norm", "outcome"))

#: A crossing is fitted to alphas that are this close to it, relatively.
WIDTH = 0.4


def mean_and_error(values: xr.DataArray) -> tuple[xr.DataArray, xr.DataArray]:
    """Mean over seeds and its standard error; the error of a single seed is not known (NaN)."""
    count, mean = values.sizes["seed"], values.mean("seed")
    if count < 2:
        return mean, xr.full_like(mean, np.nan)
    return mean, values.std("seed", ddof=1) / np.sqrt(count)


def paired_difference(runs: xr.Dataset) -> xr.DataArray:
    """Semantic minus positional training loss of runs on the same data."""
    loss = runs["train_loss"]
    return loss.sel(start="semantic", drop=True) - loss.sel(start="positional", drop=True)


def trained_crossing(runs: xr.Dataset) -> tuple[float, float]:
    """Where the mean paired difference falls through zero along alpha, and its standard error.

    Interpolated between the two alphas that enclose the crossing; NaN if there are none.
    """
    return _interpolated(*mean_and_error(paired_difference(runs)))


def fitted_crossing(runs: xr.Dataset, near: float) -> tuple[float, float]:
    """Root of a parabola through the trained loss differences around `near`, and its error.

    For fine grids with few seeds, where single differences have no error bar worth the name.
    NaN with fewer than six values of alpha within 40% of `near`, or without a root there.
    """
    return _fitted(paired_difference(runs).mean("seed"), None, near)


def means_over_seeds(dataset: xr.Dataset) -> xr.Dataset:
    """A grid of trained students without its single runs.

    Parameters
    ----------
    dataset : xarray.Dataset
        From `dotphase.grid`, with a semantic and a positional start.

    Returns
    -------
    xarray.Dataset
        Over alpha, the parameter and start: means with their ``_stderr``, the share that converged,
        and the share that ended with the mechanism it was started at (``stayed``). Over alpha
        and the parameter: ``loss_difference``, semantic less positional on the same data, and
        ``test_gain``, by how much the start with the lower loss beats the linear layer. Over the
        parameter: ``alpha_c``, where the mean difference falls through zero, the root of a
        parabola through the alphas around it. ``seeds`` is the number of data sets.

    Examples
    --------
    >>> runs = dp.grid(dp.positional_semantic, [1.5, 2.0], [0.2, 0.4], d=40, seeds=2)
    >>> dp.analysis.means_over_seeds(runs)["alpha_c"].dims
    ('omega',)
    """
    parameter = str(dataset.attrs["parameter"])
    means = {name: dataset[name] for name in QUANTITIES}
    means["loss_difference"] = paired_difference(dataset)
    means["test_gain"] = dataset["linear_test_error"] - _of_the_lowest(dataset)
    found = dataset[["linear_test_error"]].drop_dims(("alpha", "seed", "start"), errors="ignore")
    for name, values in means.items():
        found[name], found[f"{name}_stderr"] = mean_and_error(values)
    found["converged"] = dataset["converged"].mean("seed")
    found["stayed"] = (dataset["mechanism"] == dataset["start"]).mean("seed")
    pair = found["loss_difference"], found["loss_difference_stderr"]
    places = [_crossing(*(each.sel({parameter: value}) for each in pair))
              for value in dataset[parameter].values]  # fmt: skip
    for number, name in enumerate(("alpha_c", "alpha_c_stderr")):
        found[name] = parameter, np.asarray([place[number] for place in places])
    return found.assign(seeds=dataset.sizes["seed"]).assign_attrs(dataset.attrs)


def _of_the_lowest(runs: xr.Dataset) -> xr.DataArray:
    """Test error of the start that ended with the lower training loss."""
    return runs["test_error"].isel(start=runs["train_loss"].argmin("start")).drop_vars("start")


def _crossing(mean: xr.DataArray, error: xr.DataArray) -> tuple[float, float]:
    """The root of a parabola around the interpolated crossing; that one on a coarse grid."""
    between = _interpolated(mean, error)
    known = error if bool(np.all(error > 0)) else None
    fitted = _fitted(mean, known, between[0])
    return fitted if np.isfinite(fitted[0]) else between


def _interpolated(mean: xr.DataArray, error: xr.DataArray) -> tuple[float, float]:
    fall = last_fall(mean["alpha"].values, mean.values)
    if fall is None:
        return float("nan"), float("nan")
    return fall.at, fall.error(error.values, independent=True)


def _fitted(gap: xr.DataArray, error: xr.DataArray | None, near: float) -> tuple[float, float]:
    """The root of a parabola, weighted by standard errors where they are known."""
    alpha = gap["alpha"].values
    close = np.abs(alpha / near - 1) < WIDTH if np.isfinite(near) else np.zeros(alpha.size, bool)
    if close.sum() < 6:
        return float("nan"), float("nan")
    x, y = alpha[close] - near, gap.transpose("alpha").values[close]
    if error is None:
        parabola, covariance = np.polyfit(x, y, 2, cov=True)
    else:
        parabola, covariance = np.polyfit(x, y, 2, w=1 / error.values[close], cov="unscaled")
    roots = np.roots(parabola)
    roots = roots[np.isreal(roots)].real
    if roots.size == 0:
        return float("nan"), float("nan")
    root = float(roots[np.argmin(np.abs(roots))])
    powers = root ** np.array([2, 1, 0])
    spread = float(powers @ covariance @ powers)
    return near + root, float(np.sqrt(spread)) / abs(float(np.polyval(np.polyder(parabola), root)))
