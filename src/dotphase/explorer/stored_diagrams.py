"""Phase diagrams on disk: those in the package, and those in the user's cache folder.

A diagram covers alpha and omega at one sigma, ridge and A. Those of the paper's two matrices A are
package data, made by ``python -m dotphase.explorer.build_diagrams``. The page stores others in the
cache folder once it has computed them.
"""

from contextlib import suppress
from importlib.resources import as_file, files

import numpy as np
import xarray as xr

from dotphase.explorer.point import Point, mixing_matrix
from dotphase.model.mixing import MIXING
from dotphase.runtime.compilation_cache import user_cache
from dotphase.storage.files import read_dataset
from dotphase.storage.result_cache import CachedResult
from dotphase.storage.run_config import config_hash

#: Sample complexities of the diagrams.
ALPHAS = np.linspace(0.1, 2.5, 25)
#: Values of omega of the diagrams.
OMEGAS = np.linspace(0.0, 0.6, 25)
#: log2 of the Gaussian points of every cell.
LOG2_POINTS = 13
#: Version of the file format; files of another version are ignored.
VERSION = 3

#: Variables of every cell.
CELL_VARIABLES = ("train_loss", "test_error", "on_branch", "kind", "trusted")
#: Variables of every row.
ROW_VARIABLES = ("alpha_c", "alpha_l", "linear_test_error")
#: Variable of the packaged diagrams: the difference of the losses with gradient descent in place of
#: a missing minimum.
REACHED = "reached_difference"


def select_drawn(dataset: xr.Dataset) -> xr.Dataset:
    """The variables that the page draws, in single precision."""
    drawn = dataset[[*CELL_VARIABLES, *ROW_VARIABLES, *({REACHED} & set(dataset))]]
    return drawn.map(lambda part: part.astype("f4") if part.dtype.kind == "f" else part)


def load(point: Point) -> xr.Dataset | None:
    """The stored diagram of a point's model; None if there is none."""
    if not point.family.is_paper:
        return None
    is_default = (point["sigma"], point["ridge"], point["student_rank"]) == (0.5, 0.01, 1)
    if is_default and point["mixing"] in MIXING:
        with as_file(files("dotphase.explorer") / "data" / f"{point['mixing']}.nc") as path:
            if path.is_file():
                return read_dataset(path)
    entry = cache_entry(point)
    return None if entry is None else entry.dataset()


def store(point: Point, dataset: xr.Dataset) -> None:
    """Store a diagram in the user's cache folder, if that is writable.

    Diagrams of a user's own model are not stored, because its file may change.
    """
    entry = cache_entry(point) if point.family.is_paper else None
    # A cache folder that is read-only does not keep the page from drawing.
    with suppress(OSError):
        if entry is not None:
            entry.store_dataset(select_drawn(dataset))


def cache_entry(point: Point) -> CachedResult | None:
    """The file of a point's diagram, which does not depend on alpha and omega.

    None for a user without a home folder.
    """
    folder = user_cache()
    if folder is None:
        return None
    config = {name: point[name] for name in ("sigma", "ridge", "student_rank")}
    config |= {"version": VERSION, "mixing": mixing_matrix(point["mixing"])}
    return CachedResult(folder / "diagrams" / f"{config_hash(config)}.nc", config)
