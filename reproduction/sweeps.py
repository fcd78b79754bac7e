"""Training grids and theory curves that items share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import xarray as xr

from dotphase import Model, curve, grid, positional_semantic
from dotphase.analysis import training_starts
from dotphase.results import config_hash
from reproduction.store import RANDOM_NORM, Parts

#: Gradient descent of theory and students: for two tokens about the training time of the paper's
#: 5000 steps of .15.
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
    """Grid of `dotphase.grid` as a stored part; finished cells survive an interruption.

    `sizes` has d and the seeds. `rule` replaces the default optimizer and its steps. `parameters`
    are those of `positional_semantic` besides omega.
    """
    d, seeds, rule = sizes["d"], sizes["seeds"], dict(rule or {})
    config = {"alphas": alphas, "omegas": omegas, "d": d, "seeds": seeds, **rule, **parameters}
    unfinished = parts.path(f"{name}-{config_hash(config)}.npz")

    def family(omega: float) -> Model:
        return positional_semantic(omega, **parameters)

    def train() -> xr.Dataset:
        rules = {**rule, **RANDOM_NORM}
        return grid(family, alphas, omegas, d, seeds=seeds, out=unfinished, **rules)

    dataset = parts.get(name, config, train)
    unfinished.unlink(missing_ok=True)
    return dataset


def theory_curve(parts: Parts, name: str, model: Model, sizes: Mapping[str, Any]) -> xr.Dataset:
    """Both branches at the alphas and the precision of `sizes`, as a stored part."""
    config = {
        key: sizes[key]
        for key in ("alphas", "rtol", "max_log2_points", "log2_points")
        if key in sizes
    }
    return parts.call(name, curve, model, **config)


def descended(
    parts: Parts,
    name: str,
    model: Model,
    alphas: Sequence[float],
    sizes: Mapping[str, Any],
    rule: Mapping[str, Any] = DESCENT,
) -> xr.Dataset:
    """State of gradient descent at large d after the steps of students; a stored part."""
    config = {"alphas": alphas, "log2_ensemble": sizes["log2_ensemble"], "d": sizes["d"]}
    steps = {"lr": rule["lr"], "steps": rule["steps"]}
    return parts.call(name, _descended, model, **config, **steps)


def _descended(model: Model, alphas: Sequence[float], d: int, **rule: Any) -> xr.Dataset:
    """Gradient descent at large d from both starts of `dotphase.train`."""
    starts = training_starts(model, ("semantic", "positional"), d)
    return curve(model, alphas, theory="dynamics", start=starts, **rule)
