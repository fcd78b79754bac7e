"""Files that are written whole or not at all, and read without executing anything."""

from __future__ import annotations

import os
import uuid
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import xarray as xr

from dotphase.errors import InvalidInput
from dotphase.storage.provenance import attribute


def check_writable(field: str, path: str | Path, endings: tuple[str, ...]) -> Path:
    """A path that can be written later, checked before any work is done."""
    target = Path(path)
    if target.suffix.lower() not in endings:
        raise InvalidInput(field, str(path), "must end in " + " or ".join(endings))
    if not target.parent.is_dir():
        raise InvalidInput(field, str(path), "must be in a folder that exists")
    if target.is_dir() or not os.access(target.parent, os.W_OK):
        raise InvalidInput(field, str(path), "must be a file in a folder that can be written to")
    return target


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path to write to instead, which becomes `path` at the end, once it is on the disk.

    A kill at any moment leaves the old file or the new one.
    """
    temporary = path.with_name(f".{path.stem}-{uuid.uuid4().hex}{path.suffix}")
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
    holds = {name: attribute(value) for name, value in dataset.attrs.items()}
    with replacing(target) as temporary:
        dataset.assign_attrs(holds).to_netcdf(temporary, engine="h5netcdf")
    return target


def read_dataset(path: Path) -> xr.Dataset:
    """A dataset in memory, its file closed."""
    with xr.open_dataset(path) as dataset:
        return dataset.load()


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write an .npz file."""
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


def read_arrays(path: Path, field: str) -> dict[str, np.ndarray]:
    """The arrays of an .npz, which must hold no pickled objects; `InvalidInput` otherwise."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, AttributeError):
        raise InvalidInput(field, str(path), "must be an .npz file of plain arrays") from None
