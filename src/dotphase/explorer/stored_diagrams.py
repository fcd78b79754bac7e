"""Phase diagrams that are kept: those that ship with the package, and the user's own.

A diagram covers alpha and omega at one sigma, ridge and A. The paper's two are package data,
made by ``python -m dotphase.explorer.build_diagrams``; others are kept in the user's
cache folder once the page has computed them.
"""

from __future__ import annotations

from contextlib import suppress
from importlib.resources import as_file, files

import numpy as np
import xarray as xr

from dotphase.explorer.point import Point, matrix_of
from dotphase.model.mixing import MIXING
from dotphase.runtime.compilation_cache import user_cache
from dotphase.storage.files import read_dataset
from dotphase.storage.result_cache import CachedResult
from dotphase.storage.run_config import config_hash

#: The region that the diagrams cover, and how finely.
ALPHAS = np.linspace(0.1, 2.5, 25)
OMEGAS = np.linspace(0.0, 0.6, 25)
#: log2 of the Gaussian points of every cell.
POINTS = 13

#: Format of the files; a new one makes old ones invisible.
VERSION = 3

#: What a stored diagram holds besides its coordinates and lines.
PARTS = ("train_loss", "test_error", "on_branch", "kind", "trusted")
LINES = ("alpha_c", "alpha_l", "linear_test_error")
#: What the shipped ones hold besides: the difference of the losses where gradient descent stands
#: for a missing minimum.
REACHED = "reached_difference"


def slim(dataset: xr.Dataset) -> xr.Dataset:
    """Only what the page draws, in single precision."""
    small = dataset[[*PARTS, *LINES, *({REACHED} & set(dataset))]]
    return small.map(lambda part: part.astype("f4") if part.dtype.kind == "f" else part)


def load(point: Point) -> xr.Dataset | None:
    """The stored diagram of a point's model; None if there is none."""
    if not point.family.is_paper:
        return None
    usual = (point["sigma"], point["ridge"], point["student_rank"]) == (0.5, 0.01, 1)
    if usual and point["mixing"] in MIXING:
        with as_file(files("dotphase.explorer") / "data" / f"{point['mixing']}.nc") as path:
            if path.is_file():
                return read_dataset(path)
    place = kept(point)
    return None if place is None else place.dataset()


def keep(point: Point, dataset: xr.Dataset) -> None:
    """Store a diagram in the user's cache folder, if that can be written to.

    Those of a model of the user's own are not: its file may say something else tomorrow.
    """
    place = kept(point)
    if place is None or not point.family.is_paper:
        return
    # A read-only home costs the memory of it, not the picture.
    with suppress(OSError):
        place.store_dataset(slim(dataset))


def kept(point: Point) -> CachedResult | None:
    """Where the diagram of a point is kept: by everything but alpha and omega. None for a user
    without a home."""
    base = user_cache()
    if base is None:
        return None
    names = ("sigma", "ridge", "student_rank")
    asked = {**{name: point[name] for name in names}, "version": VERSION}
    asked["mixing"] = matrix_of(point["mixing"])
    return CachedResult(base / "diagrams" / f"{config_hash(asked)}.nc", asked)
