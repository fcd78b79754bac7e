"""Beyond the paper: learners without attention, or with half of it, on the same data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from dotphase import Model, baseline, positional_semantic, train
from dotphase.analysis import linear_test_error
from reproduction.figures.baselines import plot_baselines
from reproduction.item import Datasets, Item
from reproduction.rows import finite_size, format_number, over_seeds
from reproduction.store import RANDOM_NORM, Parts
from reproduction.verdict import Row, between_engines

OMEGA = 0.3
#: Attention students: visibility of positions, and initialization.
ATTENTION = {
    "attention, semantic start": (True, "semantic"),
    "attention, positional start": (True, "positional"),
    "attention without positions": (False, "semantic"),
}
#: Other learners, by the kind of `baseline`; the fitted linear layer stands for its limit.
FITTED = {
    "attention on positions only": "positional",
    "perceptron on positions": "positions",
    "kernel ridge regression": "kernel",
    "linear layer": "linear",
}

#: A learner with its own d: its weights grow as d^2 and its training time as d^3.
PERCEPTRON = "perceptron on tokens"


def compute(parts: Parts, sizes: Mapping[str, Any]) -> Datasets:
    """Test errors of all learners."""
    model, config = positional_semantic(OMEGA), dict(sizes)
    d = config.pop("perceptron_d")
    errors = parts.call("errors", _errors, model, **config)
    perceptron = parts.call("perceptron", _perceptron, model, **config | {"d": d})
    return {"errors": errors, "perceptron": perceptron}


def combine(datasets: Datasets) -> xr.Dataset:
    """All learners by label; the label of the perceptron contains its d."""
    errors, perceptron = datasets["errors"], datasets["perceptron"]
    d = perceptron.attrs["d"]
    name = PERCEPTRON if d == errors.attrs["d"] else f"{PERCEPTRON}, $d = {d}$"
    perceptron = perceptron[["test_error"]].assign_coords(learner=[name])
    results = xr.concat([errors[["test_error"]], perceptron], "learner", combine_attrs="override")
    return results.assign(linear_limit=errors["linear_limit"])


def _perceptron(model: Model, alphas: Sequence[float], d: int, seeds: int) -> xr.Dataset:
    """Test errors of the perceptron that sees the tokens."""
    fitted = [
        baseline(model, alpha, d, "perceptron", seeds=seeds, **RANDOM_NORM) for alpha in alphas
    ]
    values = [[test for _, test in result.runs] for result in fitted]
    return _dataset(model, {PERCEPTRON: values}, alphas, d)


def _errors(model: Model, alphas: Sequence[float], d: int, seeds: int) -> xr.Dataset:
    without_positions = model.replace(positions=np.zeros((model.length, model.length)))
    table: dict[str, list[Any]] = {name: [] for name in (*ATTENTION, *FITTED)}
    for alpha in alphas:
        for name, (sees_positions, start) in ATTENTION.items():
            seen = model if sees_positions else without_positions
            runs = train(seen, alpha, d, seeds=seeds, start=start, **RANDOM_NORM).runs
            table[name].append([run.test_error for run in runs])
        for name, kind in FITTED.items():
            fitted = baseline(model, alpha, d, kind, seeds=seeds, **RANDOM_NORM)
            table[name].append([test for _, test in fitted.runs])
    return _dataset(model, table, alphas, d)


def _dataset(
    model: Model, table: Mapping[str, list[Any]], alphas: Sequence[float], d: int
) -> xr.Dataset:
    values = (("learner", "alpha", "seed"), np.asarray(list(table.values())))
    return xr.Dataset(
        {"test_error": values, "linear_limit": linear_test_error(model)},
        coords={"learner": list(table), "alpha": list(alphas)},
        attrs={"d": d},
    )


def draw(datasets: Datasets) -> Any:
    """Test errors against alpha; the linear layer is its limit."""
    return plot_baselines(combine(datasets).drop_sel(learner="linear layer"))


def compare(datasets: Datasets) -> list[Row]:
    """Compare the linear layer with its limit."""
    errors = datasets["errors"]
    final = errors["test_error"].isel(alpha=-1)
    at = {"alpha": float(errors["alpha"][-1])}
    pair = (float(errors["linear_limit"]), 0.0), over_seeds(final.sel(learner="linear layer"))
    judged: dict[str, Any] = {"share": finite_size(errors), "seeds": errors.sizes["seed"]}
    return [between_engines("test error of the linear layer", at, *pair, **judged)]


def remarks(datasets: Datasets) -> list[str]:
    """Test errors of every learner in words."""
    errors = combine(datasets)
    lines = [
        f"Test errors at d = {errors.attrs['d']}, {errors.sizes['seed']} data sets a point, by "
        f"alpha; the linear layer tends to {float(errors['linear_limit']):.6f}."
    ]
    for name in errors["learner"].values.tolist():
        values = errors["test_error"].sel(learner=name)
        numbers = [
            f"{float(alpha):g}: {format_number(over_seeds(values.sel(alpha=alpha)), 5)}"
            for alpha in errors["alpha"]
        ]
        lines.append(f"{name}: " + "; ".join(numbers) + ".")
    return lines


SIZES = {
    "quick": {"alphas": [1.0, 2.0], "d": 60, "seeds": 4, "perceptron_d": 60},
    "full": {
        "alphas": [0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0], "d": 1000, "seeds": 8, "perceptron_d": 100,
    },
}  # fmt: skip
ITEM = Item("Attention and other learners", compute, draw, compare, SIZES, remarks)
