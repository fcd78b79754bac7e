"""Write files atomically, and read them without executing code."""

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
from dotphase.storage.paths import temporary_path
from dotphase.storage.provenance import attribute

if TYPE_CHECKING:
    import xarray as xr

#: Errors of damaged files; a damaged header may request more memory than the machine has.
UNREADABLE = (
    OSError, ValueError, EOFError, KeyError, TypeError, AttributeError, RuntimeError, SyntaxError,
    NotImplementedError, MemoryError, zipfile.BadZipFile, zlib.error, struct.error,
)  # fmt: skip
#: Largest size of arrays relative to their compressed file, and size that is always allowed.
MAX_EXPANSION, MIN_EXPANDED = 20, 2**28
#: Name of the entry of an .npz file with its metadata in JSON.
ABOUT = "about"


class Damaged(InvalidInput):
    """Error of a file with damaged or unexpected contents."""


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield a temporary path, which replaces `path` at the end, once its data are on disk.

    A process that is killed at any moment leaves the old file or the new one.
    """
    temporary = temporary_path(path)
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
    content = _to_bytes(dataset)  # in memory: HDF5 crashes on a full disk
    with atomic_write(target) as temporary:
        temporary.write_bytes(content)
    return target


def _to_bytes(dataset: xr.Dataset) -> Any:
    attributes = {name: attribute(value) for name, value in dataset.attrs.items()}
    return dataset.assign_attrs(attributes).to_netcdf(engine="h5netcdf")


def round_trip(dataset: xr.Dataset) -> xr.Dataset:
    """Encode a dataset as a file and decode it, which changes the types of texts."""
    import xarray as xr

    with xr.open_dataset(io.BytesIO(_to_bytes(dataset)), engine="h5netcdf") as decoded:
        return decoded.load()


def dataset_checksum(dataset: xr.Dataset) -> str:
    """Return a checksum of the variables of a dataset and their attributes."""
    checksum = hashlib.blake2b(digest_size=16)
    for name in sorted(map(str, dataset.variables)):
        variable = dataset[name]
        values = np.ascontiguousarray(variable.values)
        header = [name, variable.dims, variable.shape, variable.dtype.str, variable.attrs]
        checksum.update(json.dumps(header, default=str, sort_keys=True).encode())
        data = json.dumps(values.tolist()).encode() if values.dtype == object else values.tobytes()
        checksum.update(data)
    return checksum.hexdigest()


def read_dataset(path: Path) -> xr.Dataset:
    """Load a dataset into memory and close its file."""
    import h5py
    import xarray as xr

    if path.suffix == ".nc":
        h5py.File(path, "r").close()  # raises an error for a damaged file, and prints nothing
    with xr.open_dataset(path) as dataset:
        return dataset.load()


def write_text(text: str, path: Path) -> None:
    """Write a text file in UTF-8."""
    with atomic_write(path) as temporary:
        temporary.write_text(text, "utf-8")


def remove_leftovers(path: Path) -> None:
    """Remove the temporary files of `atomic_write` in processes that were killed."""
    pattern = f".{glob.escape(path.stem)}-{'[0-9a-f]' * 32}{path.suffix}"
    for file in path.parent.glob(pattern):
        file.unlink(missing_ok=True)


def write_arrays(
    path: Path, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, Any] | None = None
) -> None:
    """Write arrays and metadata for JSON to an .npz file."""
    text = {} if metadata is None else {ABOUT: np.asarray(json.dumps(dict(metadata)))}
    with atomic_write(path) as temporary, temporary.open("wb") as file:
        np.savez(file, **arrays, **text)  # type: ignore[arg-type]


def read_arrays(path: Path, field: str) -> dict[str, np.ndarray]:
    """Read the arrays of an .npz file; `InvalidInput` if it contains pickled objects."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            size = sum(entry.file_size for entry in arrays.zip.infolist())
            if size > max(MAX_EXPANSION * path.stat().st_size, MIN_EXPANDED):
                raise ValueError("a small file with huge arrays")
            return {name: arrays[name] for name in arrays.files}
    except UNREADABLE:
        raise Damaged(field, str(path), "must be an .npz file of plain arrays") from None


def pop_metadata(arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """Remove the metadata of `write_arrays` from arrays and return them; empty without any."""
    try:
        metadata = json.loads(str(arrays.pop(ABOUT, "{}")))
    except ValueError:
        return {}
    return metadata if isinstance(metadata, dict) else {}
