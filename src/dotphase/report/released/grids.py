"""Grids of students trained as released, kept once for all items that look at them."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from itertools import product
from typing import Any

import numpy as np
import xarray as xr

from dotphase.finite.linear import linear_test_error
from dotphase.model.paper import positional_semantic
from dotphase.report.released.runs import LR, STEPS, Cell, train_cells
from dotphase.report.store import Parts
from dotphase.storage.asked import digest
from dotphase.storage.provenance import provenance

#: Folder that the items share.
FOLDER = "runs"
#: The released alphas and omegas, and data sets of each cell.
ALPHAS = tuple(np.round(np.linspace(0.01, 2.0, 25), 6).tolist())
MORE_ALPHAS = (*ALPHAS, *np.round(np.linspace(2.0, 4.0, 25)[1:], 6).tolist())
OMEGAS = (*(round(0.02 * k, 2) for k in range(1, 26)), 0.55, 0.7)
BOTH = ("semantic", "positional")


@dataclass(frozen=True)
class Grid:
    """A grid of trainings.

    Attributes
    ----------
    alphas, omegas : where students are trained
    runs : data sets of each cell
    d : dimension
    sigma, ridge, mixing, rank : of the model and its student
    starts : where training begins, all on the same data
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

    def asked(self) -> dict[str, Any]:
        """The grid in plain values."""
        return asdict(self)

    @property
    def seed(self) -> int:
        """Data of different settings are independent; more alphas or runs are other data."""
        return zlib.crc32(digest(self.asked()).encode())

    def train(self, progress: Any = None) -> xr.Dataset:
        """Train all of it; over alpha, omega, seed and start."""
        places = list(product(self.alphas, self.omegas, range(self.runs)))
        cells = [
            Cell(omega, self.sigma, self.ridge, self.mixing, alpha, run)
            for alpha, omega, run in places
        ]
        # Cells of one size share compiled code whatever their order is.
        found = train_cells(
            cells, self.d, rank=self.rank, starts=self.starts, seed=self.seed, progress=progress
        )
        shape = (len(self.alphas), len(self.omegas), self.runs, len(self.starts))
        axes = ("alpha", "omega", "seed", "start")
        variables: dict[str, Any] = {
            name: (axes, values.reshape(shape)) for name, values in found.items()
        }
        limit = [linear_test_error(self.model(omega)) for omega in self.omegas]
        variables["linear_limit"] = ("omega", limit)
        coords = {
            "alpha": list(self.alphas), "omega": list(self.omegas),
            "seed": np.arange(self.runs, dtype=np.int32), "start": list(self.starts),
        }  # fmt: skip
        told = {field.name: getattr(self, field.name) for field in fields(self)}
        told = {name: told[name] for name in ("d", "sigma", "ridge", "mixing", "rank")}
        rule = f"gradient descent for the time of {STEPS} steps of {LR:g}"
        return xr.Dataset(variables, coords, provenance(**told, rule=rule))

    def model(self, omega: float) -> Any:
        """The model at one omega."""
        return positional_semantic(
            omega, self.sigma, self.ridge, mixing=self.mixing, student_rank=self.rank
        )


def trained(parts: Parts, grid: Grid) -> xr.Dataset:
    """The students of a grid, from the disk if any item has trained them before."""
    asked = grid.asked()
    shared = Parts(parts.folder.parent / FOLDER, parts.report, parts.where)
    name = f"d{grid.d}-{grid.mixing}-rank{grid.rank}-{digest(asked)}"
    return shared.get(name, asked, lambda: grid.train(_told(parts, name)))


def _told(parts: Parts, name: str) -> Any:
    """Progress in tenths."""
    last = -1

    def tell(done: int, total: int) -> None:
        nonlocal last
        if (tenth := 10 * done // total) > last:
            last = tenth
            parts.report(f"{name}, {done} of {total} data sets")

    return tell
