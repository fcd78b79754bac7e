"""Means of trained students over data sets, and alpha_c from their training losses."""

import numpy as np
import xarray as xr

from dotphase.experiments.training.grid_results import FIELDS
from dotphase.numerics.crossings import locate_fall

#: Quantities that are averaged over data sets.
QUANTITIES = tuple(name for name in FIELDS if name not in ("gradient_norm", "outcome"))

#: Relative distance from alpha_c up to which alphas take part in a fit, and their least number.
FIT_WIDTH, FIT_POINTS = 0.4, 6


def mean_and_error(values: xr.DataArray) -> tuple[xr.DataArray, xr.DataArray]:
    """Mean over the seeds that are not missing, and its standard error; NaN for fewer than two.

    Examples
    --------
    >>> runs = dp.grid(dp.positional_semantic, [1.5, 2.0], [0.2, 0.4], d=40, seeds=2)
    >>> mean, error = dp.analysis.mean_and_error(runs["train_loss"])
    >>> mean.dims
    ('alpha', 'omega', 'start')
    """
    count = values.notnull().sum("seed")
    error = values.std("seed", ddof=1, skipna=True) / np.sqrt(count)
    return values.mean("seed", skipna=True), error.where(count > 1)


def paired_difference(runs: xr.Dataset) -> xr.DataArray:
    """Semantic minus positional training loss of runs on the same data.

    Examples
    --------
    >>> runs = dp.grid(dp.positional_semantic, [1.5, 2.0], [0.2, 0.4], d=40, seeds=2)
    >>> dp.analysis.paired_difference(runs).dims
    ('alpha', 'omega', 'seed')
    """
    loss = runs["train_loss"]
    return loss.sel(start="semantic", drop=True) - loss.sel(start="positional", drop=True)


def trained_alpha_c(runs: xr.Dataset) -> tuple[float, float]:
    """alpha_c of trained students and its standard error.

    The mean paired difference changes sign there, interpolated between two alphas; NaN without
    a change of sign.

    Examples
    --------
    >>> runs = dp.grid(dp.positional_semantic, [1.5, 2.0], [0.2, 0.4], d=40, seeds=2)
    >>> alpha_c, stderr = dp.analysis.trained_alpha_c(runs.sel(omega=0.4))
    """
    return _interpolate(*mean_and_error(paired_difference(runs)))


def fitted_alpha_c(runs: xr.Dataset, near: float) -> tuple[float, float]:
    """Root of a parabola through the mean paired differences around `near`, and its error.

    For fine grids with few seeds, on which single differences have no reliable error. NaN with
    fewer than six values of alpha within 40% of `near`, or without a root.

    Examples
    --------
    >>> runs = dp.grid(dp.positional_semantic, [1.5, 2.0], [0.2, 0.4], d=40, seeds=2)
    >>> dp.analysis.fitted_alpha_c(runs.sel(omega=0.4), near=1.7)  # too few alphas
    (nan, nan)
    """
    return _fit(paired_difference(runs).mean("seed"), None, near)


def means_over_seeds(dataset: xr.Dataset) -> xr.Dataset:
    """Average a grid of trained students over its data sets.

    Parameters
    ----------
    dataset : xarray.Dataset
        From `dotphase.grid`, with a semantic and a positional start.

    Returns
    -------
    xarray.Dataset
        Over alpha, the parameter and start: means with their ``_stderr``, the share of runs that
        converged, and the share that ended with the mechanism of their start (``stayed``). Over
        alpha and the parameter: ``loss_difference``, semantic minus positional on the same data,
        and ``test_gain``, the test error of the linear layer minus that of the start with the
        lower training loss. Over the parameter: ``alpha_c``, the root of a parabola through the
        mean differences. ``seeds`` is the number of data sets.

    Examples
    --------
    >>> runs = dp.grid(dp.positional_semantic, [1.5, 2.0], [0.2, 0.4], d=40, seeds=2)
    >>> dp.analysis.means_over_seeds(runs)["alpha_c"].dims
    ('omega',)
    """
    parameter = str(dataset.attrs["parameter"])
    quantities = {name: dataset[name] for name in QUANTITIES}
    quantities["loss_difference"] = paired_difference(dataset)
    quantities["test_gain"] = dataset["linear_test_error"] - _lowest_loss_error(dataset)
    means = dataset[["linear_test_error"]].drop_dims(("alpha", "seed", "start"), errors="ignore")
    for name, values in quantities.items():
        means[name], means[f"{name}_stderr"] = mean_and_error(values)
    means["converged"] = dataset["converged"].mean("seed")
    means["stayed"] = (dataset["mechanism"] == dataset["start"]).mean("seed")
    pair = means["loss_difference"], means["loss_difference_stderr"]
    points = [_alpha_c(*(values.sel({parameter: value}) for values in pair))
              for value in dataset[parameter].values]  # fmt: skip
    means["alpha_c"], means["alpha_c_stderr"] = (
        (parameter, np.asarray(column)) for column in zip(*points, strict=True)
    )
    return means.assign(seeds=dataset.sizes["seed"]).assign_attrs(dataset.attrs)


def _lowest_loss_error(runs: xr.Dataset) -> xr.DataArray:
    """Test error of the start with the lower training loss."""
    return runs["test_error"].isel(start=runs["train_loss"].argmin("start")).drop_vars("start")


def _alpha_c(mean: xr.DataArray, error: xr.DataArray) -> tuple[float, float]:
    """The root of a parabola around the interpolated alpha_c; on a coarse grid the latter."""
    interpolated = _interpolate(mean, error)
    weights = error if bool(np.all(error > 0)) else None
    fitted = _fit(mean, weights, interpolated[0])
    return fitted if np.isfinite(fitted[0]) else interpolated


def _interpolate(mean: xr.DataArray, error: xr.DataArray) -> tuple[float, float]:
    return locate_fall(mean["alpha"].values, mean.values, error.values, independent=True)


def _fit(gap: xr.DataArray, error: xr.DataArray | None, near: float) -> tuple[float, float]:
    """The root of a parabola, weighted by standard errors if there are any."""
    alpha, missing = gap["alpha"].values, (float("nan"), float("nan"))
    close = np.abs(alpha / near - 1) < FIT_WIDTH
    if close.sum() < FIT_POINTS:
        return missing
    x, y = alpha[close] - near, gap.transpose("alpha").values[close]
    if error is None:
        parabola, covariance = np.polyfit(x, y, 2, cov=True)
    else:
        parabola, covariance = np.polyfit(x, y, 2, w=1 / error.values[close], cov="unscaled")
    roots = np.roots(parabola)
    roots = roots[np.isreal(roots)].real
    if roots.size == 0:
        return missing
    root = float(roots[np.argmin(np.abs(roots))])
    powers = root ** np.array([2, 1, 0])
    stderr = float(np.sqrt(powers @ covariance @ powers))
    return near + root, stderr / abs(float(np.polyval(np.polyder(parabola), root)))
