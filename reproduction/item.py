"""The parts of a figure or table of the reproduction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import xarray as xr

from reproduction.store import Parts
from reproduction.verdict import Row

Scale = Literal["quick", "full"]
#: Results of an item by name: datasets, or other objects that can be stored.
Datasets = dict[str, Any]


def evenly(first: float, last: float, count: int) -> list[float]:
    """Evenly spaced values, rounded to four decimals."""
    return np.round(np.linspace(first, last, count), 4).tolist()


@dataclass(frozen=True)
class Item:
    """One figure or table.

    Attributes
    ----------
    title : one line for the heading of the report
    compute : the datasets behind it, from (parts on disk, sizes)
    draw : the figure, or several by name, from the datasets
    compare : lines of the report, from the datasets
    sizes : arguments of `compute` for each scale
    remarks : observations in sentences with numbers, from the datasets
    tables : long tables to write next to the report, by name, from the datasets
    """

    title: str
    compute: Callable[[Parts, Mapping[str, Any]], Datasets]
    draw: Callable[[Datasets], Any]
    compare: Callable[[Datasets], list[Row]]
    sizes: Mapping[str, Mapping[str, Any]]
    remarks: Callable[[Datasets], list[str]] = lambda datasets: []
    tables: Callable[[Datasets], dict[str, xr.Dataset]] = lambda datasets: {}
