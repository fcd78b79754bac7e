"""Files that are written whole or not at all, and read without executing anything."""

from __future__ import annotations

import glob
import hashlib
import io
import json
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dotphase.errors import InvalidInput
from dotphase.storage.paths import beside
from dotphase.storage.provenance import attribute

if TYPE_CHECKING:
    import xarray as xr

#: What reading a damaged file may raise: a header may ask for more memory than there is.
UNREADABLE = (
    OSError, ValueError, EOFError, KeyError, TypeError, AttributeError, RuntimeError, SyntaxError,
    NotImplementedError, MemoryError, zipfile.BadZipFile, zlib.error, struct.error,
)  # fmt: skip
#: Name of the entry of an .npz file that says what it holds.
ABOUT = "about"


class Damaged(InvalidInput):
    """A file that is no longer, or never was, what it should be."""


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """A path to write to instead, which becomes `path` at the end, once it is on the disk.

    A kill at any moment leaves the old file or the new one.
    """
    temporary = beside(path)
    try:
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_dataset(dataset: xr.Dataset, path: str | Path) -> Path:
    """Write a netCDF file."""
    target = Path(path)
    # Made in memory: HDF5 does not survive a disk that is full.
    made = _as_bytes(dataset)
    with atomic_write(target) as temporary:
        temporary.write_bytes(made)
    return target


def _as_bytes(dataset: xr.Dataset) -> Any:
    holds = {name: attribute(value) for name, value in dataset.attrs.items()}
    return dataset.assign_attrs(holds).to_netcdf(engine="h5netcdf")


def as_read_back(dataset: xr.Dataset) -> xr.Dataset:
    """A dataset as it comes back from a file: texts have other types there."""
    import xarray as xr

    with xr.open_dataset(io.BytesIO(_as_bytes(dataset)), engine="h5netcdf") as found:
        return found.load()


def digest_of(dataset: xr.Dataset) -> str:
    """A mark that tells whether anything in a dataset has changed since it was written."""
    mark = hashlib.blake2b(digest_size=16)
    for name in sorted(map(str, dataset.variables)):
        one = dataset[name]
        values = np.ascontiguousarray(one.values)
        told = [name, one.dims, one.shape, one.dtype.str, one.attrs]
        mark.update(json.dumps(told, default=str, sort_keys=True).encode())
        data = json.dumps(values.tolist()).encode() if values.dtype == object else values.tobytes()
        mark.update(data)
    return mark.hexdigest()


def read_dataset(path: Path) -> xr.Dataset:
    """A dataset in memory, its file closed."""
    import h5py
    import xarray as xr

    if path.suffix == ".nc":
        h5py.File(path, "r").close()  # refuses a damaged file without a word on the terminal
    with xr.open_dataset(path) as dataset:
        return dataset.load()


def write_text(text: str, path: Path) -> None:
    """Write a text file in UTF-8."""
    with atomic_write(path) as temporary:
        temporary.write_text(text, "utf-8")


def remove_leftovers(path: Path) -> None:
    """Remove what writers of `path` that were killed have left beside it."""
    pattern = f".{glob.escape(path.stem)}-{'[0-9a-f]' * 32}{path.suffix}"
    for file in path.parent.glob(pattern):
        file.unlink(missing_ok=True)


def write_arrays(
    path: Path, arrays: Mapping[str, np.ndarray], about: Mapping[str, Any] | None = None
) -> None:
    """Write an .npz file, with what JSON can hold beside the arrays."""
    text = {} if about is None else {ABOUT: np.asarray(json.dumps(dict(about)))}
    with atomic_write(path) as temporary, temporary.open("wb") as file:
        np.savez(file, **arrays, **text)  # type: ignore[arg-type]


def read_arrays(path: Path, field: str) -> dict[str, np.ndarray]:
    """The arrays of an .npz, which must hold no pickled objects; `InvalidInput` otherwise."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as found:
            return {name: found[name] for name in found.files}
    except UNREADABLE:
        raise Damaged(field, str(path), "must be an .npz file of plain arrays") from None


def take_metadata(arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """What was written beside arrays, taken out of them; nothing if it is not of our making."""
    try:
        found = json.loads(str(arrays.pop(ABOUT, "{}")))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
