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
#: What an item works with: datasets by name, or other results that can be kept.
Datasets = dict[str, Any]


def evenly(first: float, last: float, count: int) -> list[float]:
    """Evenly spaced values, as a person would write them."""
    return np.round(np.linspace(first, last, count), 4).tolist()


@dataclass(frozen=True)
class Item:
    """One figure or table.

    Attributes
    ----------
    title : what it shows, in a line
    compute : the datasets behind it, from (parts on disk, sizes)
    draw : the figure, or several by name, from the datasets
    compare : lines of the report, from the datasets
    sizes : arguments of `compute` for each scale
    remarks : what was seen, in sentences with numbers, from the datasets
    tables : long tables that are written beside the report, by name, from the datasets
    """

    title: str
    compute: Callable[[Parts, Mapping[str, Any]], Datasets]
    draw: Callable[[Datasets], Any]
    compare: Callable[[Datasets], list[Row]]
    sizes: Mapping[str, Mapping[str, Any]]
    remarks: Callable[[Datasets], list[str]] = lambda datasets: []
    tables: Callable[[Datasets], dict[str, xr.Dataset]] = lambda datasets: {}
