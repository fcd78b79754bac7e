"""Where a dataset came from, written into its attributes."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

import dotphase

if TYPE_CHECKING:  # whoever reads and writes files need not wait for JAX
    from dotphase.model import Model


def provenance(model: Model | None = None, **asked: Any) -> dict[str, Any]:
    """Attributes that say what was asked, of which version, on what, and when.

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
        "source": "arXiv:2402.03902",
    }
    if model is not None:
        attributes |= describe_model(model)
    return attributes | {
        name: attribute(value) for name, value in asked.items() if value is not None
    }


def describe_model(model: Model) -> dict[str, Any]:
    """Everything that sets a model apart, as plain values.

    Examples
    --------
    >>> dp.results.describe_model(dp.positional_semantic())["length"]
    2
    """
    sizes = ("length", "teacher_rank", "student_rank")
    shown: dict[str, Any] = {
        **{name: getattr(model, name) for name in sizes},
        "sigma": np.asarray(model.sigma).tolist(),
        "positions": np.asarray(model.positions).ravel().tolist(),
        "ridge": float(model.ridge),
        "teacher": describe(model.teacher),
        "student": describe(model.student),
        **_describe_channel(model),
    }
    if model.spectrum is not None:
        shown["spectrum_values"] = np.asarray(model.spectrum.values).ravel().tolist()
        shown["spectrum_weights"] = np.asarray(model.spectrum.weights).tolist()
    return shown


def _describe_channel(model: Model) -> dict[str, Any]:
    """What a model has besides attention with the squared loss."""
    shown: dict[str, Any] = {
        name: describe(getattr(model, name))
        for name in ("loss", "metric", "proximal")
        if getattr(model, name) is not None
    }
    if model.noise:
        shown |= {"noise": model.noise}
    if model.correlation is not None:
        shown |= {"correlation": np.asarray(model.correlation).ravel().tolist()}
    if model.latent is not None:
        shown |= {"latent": describe(model.latent)}
    return shown


def attribute(value: Any) -> Any:
    """A value that every netCDF format can hold: no truth values, and no lists of words."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, list | tuple) and all(isinstance(part, str) for part in value):
        return ", ".join(value)
    return value


def describe(function: Any) -> str:
    """A readable name of an attention function, with its numbers if it has any."""
    name = function if isinstance(function, str) else getattr(function, "__name__", None)
    if name is not None or function is None:
        return str(name)
    numbers = {key: np.asarray(value).tolist() for key, value in vars(function).items()}
    inside = ", ".join(f"{key}={value}" for key, value in numbers.items())
    return f"{type(function).__name__}({inside})"
