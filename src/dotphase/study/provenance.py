"""Where a dataset came from, written into its attributes, and how it reaches the disk."""

from __future__ import annotations

import os
import platform
import uuid
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import dotphase
from dotphase.errors import InvalidInput
from dotphase.model import Model


def provenance(model: Model | None = None, **asked: Any) -> dict[str, Any]:
    """Attributes that say what was asked, of which version, on what, and when."""
    import jax

    attributes: dict[str, Any] = {
        "software": f"dotphase {dotphase.__version__}",
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "jax": jax.__version__,
        "numpy": np.__version__,
        "source": "arXiv:2402.03902",
    }
    if model is not None:
        attributes |= {
            "length": model.length,
            "teacher_rank": model.teacher_rank,
            "student_rank": model.student_rank,
            "sigma": np.asarray(model.sigma).tolist(),
            "positions": np.asarray(model.positions).ravel().tolist(),
            "ridge": float(model.ridge),
            "teacher": describe(model.teacher),
            "student": describe(model.student),
        }
        if model.spectrum is not None:
            attributes["spectrum_values"] = np.asarray(model.spectrum.values).ravel().tolist()
            attributes["spectrum_weights"] = np.asarray(model.spectrum.weights).tolist()
    return attributes | {
        name: _attribute(value) for name, value in asked.items() if value is not None
    }


def _attribute(value: Any) -> Any:
    """A value that every netCDF format can hold: no truth values, and no lists of words."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, list | tuple) and all(isinstance(part, str) for part in value):
        return ", ".join(value)
    return value


def describe(function: Any) -> str:
    """A readable name of an attention function, with its numbers if it has any."""
    name = getattr(function, "__name__", None)
    if name is not None:
        return str(name)
    numbers = {key: np.asarray(value).tolist() for key, value in vars(function).items()}
    inside = ", ".join(f"{key}={value}" for key, value in numbers.items())
    return f"{type(function).__name__}({inside})"


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


def write_dataset(dataset: xr.Dataset, path: str | Path) -> Path:
    """Write a netCDF file whole or not at all."""
    target = Path(path)
    # HDF5 where it is installed; without it the older netCDF format that SciPy writes.
    engine: Any = "h5netcdf" if find_spec("h5netcdf") else "scipy"
    temporary = target.with_name(f".{target.stem}-{uuid.uuid4().hex}{target.suffix}")
    holds = {name: _attribute(value) for name, value in dataset.attrs.items()}
    try:
        dataset.assign_attrs(holds).to_netcdf(temporary, engine=engine)
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
    return target
