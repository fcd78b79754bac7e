"""Training grids for the reproduction, and what is read off them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from dotphase._numerics.crossing import last_fall
from dotphase.experiments.curve import crossing_of, curve
from dotphase.experiments.grid import grid
from dotphase.finite.begin import start_from
from dotphase.model import Model
from dotphase.model.paper import positional_semantic
from dotphase.report.store import Parts
from dotphase.storage.asked import digest

#: Gradient descent that theory and students share: for two tokens about as far as the paper's 5000
#: steps of .15, and small enough to be stable.
DESCENT: dict[str, Any] = {"optimizer": "gd", "lr": 4.0, "steps": 127}


def training_grid(
    parts: Parts,
    name: str,
    sizes: Mapping[str, Any],
    alphas: Sequence[float],
    omegas: Sequence[float],
    rule: Mapping[str, Any] | None = None,
    **parameters: Any,
) -> xr.Dataset:
    """A grid of `dotphase.experiments.grid`, kept as a part, its cells even when it is stopped.

    `sizes` has d and the seeds, `rule` the optimiser and its steps, if they are to differ from
    those of a grid; `parameters` are those of the models besides omega, as in
    `positional_semantic`.
    """
    d, seeds, rule = sizes["d"], sizes["seeds"], dict(rule or {})
    asked = {"alphas": alphas, "omegas": omegas, "d": d, "seeds": seeds, **rule, **parameters}
    unfinished = parts.path(f"{name}-{digest(asked)}.npz")

    def family(omega: float) -> Model:
        return positional_semantic(omega, **parameters)

    dataset = parts.get(
        name, asked, lambda: grid(family, alphas, omegas, d, seeds=seeds, out=unfinished, **rule)
    )
    unfinished.unlink(missing_ok=True)
    return dataset


def theory_curve(parts: Parts, name: str, model: Model, sizes: Mapping[str, Any]) -> xr.Dataset:
    """Both branches along the alphas of `sizes`, as finely as these say; kept as a part."""
    asked = {key: sizes[key] for key in ("alphas", "rtol", "most", "log2_points") if key in sizes}
    return parts.call(name, curve, model, **asked)


def descended(
    parts: Parts,
    name: str,
    model: Model,
    alphas: Sequence[float],
    sizes: Mapping[str, Any],
    rule: Mapping[str, Any] = DESCENT,
) -> xr.Dataset:
    """Where gradient descent is in the limit of large d after the steps that students take at the
    d of `sizes`; kept as a part."""
    asked = {"alphas": alphas, "log2_ensemble": sizes["log2_ensemble"], "d": sizes["d"]}
    steps = {"lr": rule["lr"], "steps": rule["steps"]}
    return parts.call(name, _descended, model, **asked, **steps)


def _descended(model: Model, alphas: Sequence[float], d: int, **rule: Any) -> xr.Dataset:
    """From both starts of `dotphase.train`: the positional one is a unit vector, m = 1/sqrt d."""
    starts = {"semantic": "semantic", "positional": start_from(m=d**-0.5)}
    ends = [curve(model, alphas, engine="dynamics", start=one, **rule) for one in starts.values()]
    both = xr.concat(ends, "branch", data_vars="minimal", combine_attrs="override")
    both = both.assign_coords(branch=list(starts))
    both["crossing"], both["crossing_stderr"] = crossing_of(both)
    return both


def mean_and_error(values: xr.DataArray, over: str = "seed") -> tuple[xr.DataArray, xr.DataArray]:
    """Mean over seeds and its standard error; the error of a single seed is not known (NaN)."""
    count = values.sizes[over]
    if count < 2:
        return values.mean(over), xr.full_like(values.mean(over), np.nan)
    return values.mean(over), values.std(over, ddof=1) / np.sqrt(count)


def paired_difference(runs: xr.Dataset) -> xr.DataArray:
    """Semantic minus positional training loss of runs on the same data."""
    loss = runs["train_loss"]
    return loss.sel(start="semantic", drop=True) - loss.sel(start="positional", drop=True)


def trained_crossing(runs: xr.Dataset) -> tuple[float, float]:
    """Where the mean paired difference falls through zero along alpha, and its standard error.

    Interpolated between the two alphas that enclose the crossing; NaN if there are none.
    """
    mean, error = mean_and_error(paired_difference(runs))
    fall = last_fall(runs["alpha"].values, mean.values)
    if fall is None:
        return float("nan"), float("nan")
    return fall.at, fall.error(error.values, independent=True)


def fitted_crossing(runs: xr.Dataset, near: float) -> tuple[float, float]:
    """Root of a parabola through the trained loss differences around `near`, and its error.

    For fine grids with few seeds, where single differences have no error bar worth the name.
    NaN with fewer than six values of alpha within 40% of `near`, or without a root there.
    """
    gap = paired_difference(runs).mean("seed")
    alpha = gap["alpha"].values
    close = np.abs(alpha / near - 1) < 0.4 if np.isfinite(near) else np.zeros(alpha.size, bool)
    if close.sum() < 6:
        return float("nan"), float("nan")
    x, y = alpha[close] - near, gap.transpose("alpha").values[close]
    parabola, covariance = np.polyfit(x, y, 2, cov=True)
    roots = np.roots(parabola)
    roots = roots[np.isreal(roots)].real
    if roots.size == 0:
        return float("nan"), float("nan")
    root = float(roots[np.argmin(np.abs(roots))])
    powers = root ** np.array([2, 1, 0])
    spread = float(powers @ covariance @ powers)
    return near + root, float(np.sqrt(spread)) / abs(float(np.polyval(np.polyder(parabola), root)))
