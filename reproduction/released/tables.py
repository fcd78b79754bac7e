"""The released tables compared with our runs: values, spreads, differences in standard errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib.resources import as_file, files
from typing import Any

import numpy as np
import xarray as xr
from scipy import stats

#: Our name of each released quantity of runs.
RUNS = {
    "train_loss": "train_loss",
    "test_error": "test_error",
    "m": "m",
    "theta_over_sigma2": "theta",
    "linear_test_error": "linear_test_error",
}
#: The same of a student of rank two, column by column.
PAIRS = {
    "train_loss": "train_loss",
    "test_error": "test_error",
    "m_larger": "m_larger",
    "m_smaller": "m_smaller",
    "theta_larger": "theta_larger",
    "theta_smaller": "theta_smaller",
    "linear_test_error": "linear_test_error",
}
#: Runs behind each released number.
COUNTS = {"maps": 24, "slices": 24, "dimensions": 80, "rank2": 10}
#: Fewer runs than this have a spread that says little.
FEW = 5
#: Tolerance for alphas of tables, which have five digits.
SAME = 1e-3
#: Labels of every compared value.
LABELS = ("table", "mixing", "omega", "sigma", "ridge", "d", "alpha", "start", "quantity")


@lru_cache(maxsize=8)
def table(name: str) -> xr.Dataset:
    """One of the released tables: maps, slices, dimensions, rank2 or theory."""
    with as_file(files("reproduction.released") / "tables.nc") as path:
        return xr.load_dataset(path, group=name)


def list_values(
    name: str, released: xr.Dataset, ours: xr.Dataset, quantities: Mapping[str, str], **labels: Any
) -> xr.Dataset:
    """List the values of a released table with those of our runs at the same settings.

    Parameters
    ----------
    name : str
        Name of the table.
    released, ours : xarray.Dataset
        Numbers with their ``_std``; runs over ``seed``. Ours may cover a part of the released grid.
    quantities : mapping
        Released names, and ours.
    **labels
        Further labels of the values.
    """
    axes = [axis for axis in ("alpha", "omega") if axis in ours.dims and axis in released.dims]
    coordinates = {axis: ours[axis] for axis in axes}
    nearest = released.sel(coordinates, method="nearest", tolerance=SAME).assign_coords(coordinates)
    comparisons = []
    for quantity, our_name in quantities.items():
        scale = float(labels["sigma"]) ** 2 if quantity.startswith("theta") else 1.0
        our_runs = ours[our_name].drop_vars("seed") / scale
        value, count = nearest[quantity], our_runs.sizes["seed"]
        no_spread = xr.full_like(value, np.nan)
        spread = nearest.get(f"{quantity}_std", no_spread)
        comparison = xr.Dataset(
            {"value": value, "spread": spread, "ours": our_runs.mean("seed"),
             "ours_spread": our_runs.std("seed", ddof=1)}
        )  # fmt: skip
        comparison = comparison.assign(runs=COUNTS[name.split()[0]], ours_runs=count)
        comparisons.append(comparison.expand_dims(quantity=[quantity]))
    combined = xr.concat(comparisons, "quantity").assign_coords(table=name, **labels)
    return _list(combined)


def _list(comparison: xr.Dataset) -> xr.Dataset:
    """Stack all values of a dataset along one axis, each with all of its labels."""
    rows = comparison.stack(row=list(comparison.dims), create_index=False)
    rows = rows.drop_vars([name for name in rows.coords if name not in LABELS])
    labels = {
        name: ("row", np.broadcast_to(rows[name].values, rows.sizes["row"])) for name in LABELS
    }
    numbers = {
        name: ("row", np.broadcast_to(rows[name].values, rows.sizes["row"]))
        for name in rows.data_vars
    }
    return xr.Dataset(numbers | labels)


def combine(parts: Iterable[xr.Dataset]) -> xr.Dataset:
    """All compared values in one list, with the difference in standard errors."""
    rows = xr.concat(list(parts), "row")
    # Our spread replaces a missing one, with a mark.
    stands_in = rows["spread"].isnull()
    spread = rows["spread"].where(~stands_in, rows["ours_spread"])
    square, our_square = spread**2 / rows["runs"], rows["ours_spread"] ** 2 / rows["ours_runs"]
    rows["stands_in"] = stands_in.astype(np.int8)
    rows["error"] = np.sqrt(square + our_square)
    rows["difference"] = (rows["ours"] - rows["value"]) / rows["error"]
    # Spreads are estimates themselves: Welch's degrees of freedom.
    rows["freedom"] = (square + our_square) ** 2 / (
        square**2 / (rows["runs"] - 1) + our_square**2 / (rows["ours_runs"] - 1)
    )
    return rows


def expected_width(rows: xr.Dataset) -> float:
    """Expected standard deviation of the differences, by Student's distributions."""
    freedom = np.maximum(rows["freedom"].values, 2.5)
    return float(np.sqrt(np.mean(freedom / (freedom - 2))))


def by_chance(rows: xr.Dataset, errors: Any) -> np.ndarray:
    """Probability of a difference beyond a number of standard errors, by Student's law.

    The spread of few runs of ours can be small by chance, which Welch's degrees of freedom ignore:
    then only those of our runs count.
    """
    few = rows["ours_runs"].values < FEW
    freedom = np.where(few, rows["ours_runs"].values - 1, rows["freedom"].values)
    return np.asarray(2 * stats.t.sf(np.abs(errors), freedom))


def expected_beyond(rows: xr.Dataset, errors: float = 3.0) -> float:
    """Expected number of differences beyond a number of standard errors."""
    return float(np.sum(by_chance(rows, errors)))


def worst(rows: xr.Dataset, count: int = 10) -> xr.Dataset:
    """Sort by likelihood, least likely first: differences of few runs are often large."""
    rows = rows.assign(chance=("row", by_chance(rows, rows["difference"].values)))
    return rows.isel(row=np.argsort(rows["chance"].values)[:count])
