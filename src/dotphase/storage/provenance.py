"""Provenance of datasets, for their attributes."""

from __future__ import annotations

import json
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import numpy as np

import dotphase
from dotphase import model as models
from dotphase.runtime.prng import PRNG


def provenance(model: models.Model | None = None, **settings: Any) -> dict[str, Any]:
    """Return attributes with versions, time, model and settings of a computation.

    Examples
    --------
    >>> dp.results.provenance(dp.positional_semantic(), d=1000)["d"]
    1000
    """
    attributes: dict[str, Any] = {
        "software": f"dotphase {dotphase.__version__}",
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "jax": version("jax"),
        "numpy": np.__version__,
        "prng": f"{PRNG}, partitionable",
        "source": "arXiv:2402.03902",
    }
    if model is not None:
        attributes |= describe_model(model)
        # Attributes of netCDF have one dimension at most.
        matrices = {"positions": model.positions, "correlation": model.correlation}
        attributes |= {
            name: json.dumps(np.asarray(matrix).tolist())
            for name, matrix in matrices.items()
            if matrix is not None
        }
    return attributes | {
        name: attribute(value) for name, value in settings.items() if value is not None
    }


def describe_model(model: models.Model) -> dict[str, Any]:
    """Describe a model completely in plain values.

    Examples
    --------
    >>> dp.results.describe_model(dp.positional_semantic())["length"]
    2
    """
    sizes = ("length", "teacher_rank", "student_rank")
    description: dict[str, Any] = {
        **{name: getattr(model, name) for name in sizes},
        "sigma": np.asarray(model.sigma).tolist(),
        "positions": np.asarray(model.positions).ravel().tolist(),
        "ridge": float(model.ridge),
        "teacher": describe(model.teacher),
        "student": describe(model.student),
        **_describe_channel(model),
    }
    if model.spectrum is not None:
        description["spectrum_values"] = np.asarray(model.spectrum.values).ravel().tolist()
        description["spectrum_weights"] = np.asarray(model.spectrum.weights).tolist()
    return description


def _describe_channel(model: models.Model) -> dict[str, Any]:
    """Describe the parts of a model other than attention with the squared loss."""
    description: dict[str, Any] = {
        name: describe(getattr(model, name))
        for name in ("loss", "metric", "proximal")
        if getattr(model, name) is not None
    }
    if model.noise:
        description |= {"noise": model.noise}
    if model.correlation is not None:
        description |= {"correlation": np.asarray(model.correlation).ravel().tolist()}
    if model.latent is not None:
        description |= {"latent": describe(model.latent)}
    return description


def attribute(value: Any) -> Any:
    """Convert bools and lists of texts to values that netCDF attributes can have."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, list | tuple) and all(isinstance(part, str) for part in value):
        return ", ".join(value)
    return value


def describe(function: Any) -> str:
    """Return a readable name of a function, with the numbers and functions that it contains."""
    name = function if isinstance(function, str) else getattr(function, "__name__", None)
    if name is not None or function is None:
        return str(name)
    parts = {
        key: describe(part) if callable(part) else np.asarray(part).tolist()
        for key, part in vars(function).items()
    }
    contents = ", ".join(f"{key}={part}" for key, part in parts.items())
    return f"{type(function).__name__}({contents})"
