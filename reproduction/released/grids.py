"""Grids of students trained as released, stored once for all items that use them."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from itertools import product
from typing import Any

import numpy as np
import xarray as xr

from dotphase import positional_semantic
from dotphase.analysis import linear_test_error
from dotphase.results import config_hash, provenance
from reproduction.released.runs import LR, STEPS, Cell, train_cells
from reproduction.store import Parts

#: Folder that the items share.
FOLDER = "runs"
#: The released alphas and omegas, and data sets of each cell.
ALPHAS = tuple(np.round(np.linspace(0.01, 2.0, 25), 6).tolist())
MORE_ALPHAS = (*ALPHAS, *np.round(np.linspace(2.0, 4.0, 25)[1:], 6).tolist())
OMEGAS = (*(round(0.02 * k, 2) for k in range(1, 26)), 0.55, 0.7)
BOTH = ("semantic", "positional")
#: The other slices, by sigma and ridge, and the other dimensions, all at omega = .3.
SLICES = ((0.3, 0.01), (0.5, 0.001), (0.5, 0.1), (0.7, 0.01), (1.0, 0.01))
DIMENSIONS = (10, 15, 23, 36, 56, 87, 135, 209, 323, 500)


@dataclass(frozen=True)
class Grid:
    """A grid of trainings.

    Attributes
    ----------
    alphas, omegas : axes of the grid
    runs : data sets of each cell
    d : dimension
    sigma, ridge, mixing, rank : of the model and its student
    starts : initializations, all on the same data
    """

    alphas: Sequence[float]
    omegas: Sequence[float]
    runs: int
    d: int = 1000
    sigma: float = 0.5
    ridge: float = 0.01
    mixing: str = "standard"
    rank: int = 1
    starts: Sequence[str] = BOTH

    def config(self) -> dict[str, Any]:
        """The configuration of the grid in plain values."""
        return asdict(self)

    @property
    def seed(self) -> int:
        """Seed of the data, a hash of the configuration: different grids have independent data."""
        return zlib.crc32(config_hash(self.config()).encode())

    def train(self, progress: Any = None) -> xr.Dataset:
        """Train all cells; the result is over alpha, omega, seed and start."""
        indices = list(product(self.alphas, self.omegas, range(self.runs)))
        cells = [
            Cell(omega, self.sigma, self.ridge, self.mixing, alpha, run)
            for alpha, omega, run in indices
        ]
        # Cells of one size share compiled code, in any order.
        trained_runs = train_cells(
            cells, self.d, rank=self.rank, starts=self.starts, seed=self.seed, progress=progress
        )
        shape = (len(self.alphas), len(self.omegas), self.runs, len(self.starts))
        axes = ("alpha", "omega", "seed", "start")
        variables: dict[str, Any] = {
            name: (axes, values.reshape(shape)) for name, values in trained_runs.items()
        }
        limit = [linear_test_error(self.model(omega)) for omega in self.omegas]
        variables["linear_limit"] = ("omega", limit)
        coords = {
            "alpha": list(self.alphas), "omega": list(self.omegas),
            "seed": np.arange(self.runs, dtype=np.int32), "start": list(self.starts),
        }  # fmt: skip
        attributes = {field.name: getattr(self, field.name) for field in fields(self)}
        attributes = {name: attributes[name] for name in ("d", "sigma", "ridge", "mixing", "rank")}
        rule = f"gradient descent for the time of {STEPS} steps of {LR:g}"
        return xr.Dataset(variables, coords, provenance(**attributes, rule=rule))

    def model(self, omega: float) -> Any:
        """The model at one omega."""
        return positional_semantic(
            omega, self.sigma, self.ridge, mixing=self.mixing, student_rank=self.rank
        )


def trained(parts: Parts, grid: Grid) -> xr.Dataset:
    """The students of a grid, loaded if an item has trained them before."""
    config = grid.config()
    shared = Parts(parts.folder.parent / FOLDER, parts.report, parts.where)
    name = f"d{grid.d}-{grid.mixing}-rank{grid.rank}-{config_hash(config)}"
    trained_runs = shared.get(name, config, lambda: grid.train(_report_tenths(parts, name)))
    # The layer is fitted to the data, which all starts share.
    layer = trained_runs["linear_test_error"].isel(start=0, drop=True)
    return trained_runs.assign(linear_test_error=layer)


def _report_tenths(parts: Parts, name: str) -> Any:
    """Callback that reports each tenth of the data sets."""
    reported = -1

    def report(done: int, total: int) -> None:
        nonlocal reported
        if (tenth := 10 * done // total) > reported:
            reported = tenth
            parts.report(f"{name}, {done} of {total} data sets")

    return report


#: Alphas of the quick report: four of the released ones.
FEW = tuple(ALPHAS[k] for k in (6, 12, 18, 24))

#: Grids by scale and matrix A; quick ones have few cells, or a smaller d.
MAPS = {
    "quick": {
        "standard": Grid(FEW, (0.2, 0.3, 0.4), 4, d=500),
        "other": Grid(FEW, (0.1, 0.3, 0.5), 4, d=100, mixing="other"),
    },
    "full": {
        "standard": Grid(ALPHAS, OMEGAS, 24),
        "other": Grid(ALPHAS, OMEGAS, 24, mixing="other"),
    },
}
RANK_TWO = {
    "quick": Grid((1.005, 2.0, 3.0, 4.0), (0.1, 0.3, 0.5), 4, d=60, rank=2, starts=("random",)),
    "full": Grid(MORE_ALPHAS, OMEGAS, 10, rank=2, starts=("random",)),
}
#: Runs and dimensions at alpha = 1.5.
SCALING = {"quick": (24, (23, 87, 209)), "full": (80, DIMENSIONS)}


def slice_grid(scale: str, sigma: float, ridge: float) -> Grid:
    """The grid along alpha at omega = .3 for another sigma or ridge."""
    if scale == "quick":
        return Grid(FEW, (0.3,), 4, d=150, sigma=sigma, ridge=ridge)
    return Grid(ALPHAS, (0.3,), 24, sigma=sigma, ridge=ridge)


def scaling_grids(scale: str) -> dict[int, Grid]:
    """The grids of single cells at alpha = 1.5, by d."""
    runs, dimensions = SCALING[scale]
    return {d: Grid((1.5,), (0.3,), runs, d) for d in dimensions}
