"""Encode results as arrays and one JSON text, and decode them without running foreign code.

Plain values become JSON. Arrays, dataclasses, named tuples, functions and datasets become entries
of a table of objects: an object that several results share, such as their model, is written once.
Decoding creates only classes of dotphase, sets their fields without calling them, and looks up
functions only in `FUNCTION_MODULES`. Nothing is pickled.
"""

import dataclasses
import json
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np

from dotphase.errors import InvalidInput
from dotphase.storage.provenance import describe

#: Modules whose functions are saved by name.
FUNCTION_MODULES = ("dotphase.model", "jax.nn", "jax.numpy")
#: Modules whose classes are saved by name.
CLASS_MODULES = ("dotphase",)
#: Errors that damaged data may cause while they are decoded.
DAMAGED = (AttributeError, ImportError, LookupError, RecursionError, TypeError, ValueError)
#: Prefix of the names of arrays.
ARRAY = "array_"


class Undecodable(Exception):
    """Data that `encode` cannot have written in this version; the message gives the reason."""


@dataclasses.dataclass(frozen=True)
class UnsavedFunction:
    """Stand-in for a function of the user's program, which files do not contain."""

    name: str  #: description of the function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        rule = (
            "was not saved, because it is not a function of dotphase: build the model again and "
            "use dataclasses.replace(result, model=model)"
        )
        raise InvalidInput("model", self.name, rule)

    def __repr__(self) -> str:
        return self.name

    @property
    def __name__(self) -> str:
        return self.name


def encode(value: Any) -> tuple[str, dict[str, np.ndarray]]:
    """Return the JSON text of a value and the arrays that the text refers to by name."""
    encoder = _Encoder()
    root = encoder.node(value)
    return json.dumps({"objects": encoder.objects, "root": root}), encoder.arrays


def decode(text: str, arrays: Mapping[str, np.ndarray]) -> Any:
    """Return the value that `encode` was called with; `Undecodable` if the data are damaged."""
    try:
        stored = json.loads(text)
        decoder = _Decoder(arrays)
        for entry in stored["objects"]:
            decoder.objects.append(decoder.entry(entry))
        return decoder.node(stored["root"])
    except DAMAGED as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise Undecodable(f"is damaged ({reason})") from error


class _Encoder:
    """Encoder with the table of objects written so far."""

    def __init__(self) -> None:
        self.objects: list[dict[str, Any]] = []
        self.arrays: dict[str, np.ndarray] = {}
        self._indices: dict[int, int] = {}
        self._alive: list[Any] = []  # an id is unique only while its object exists

    def node(self, value: Any) -> Any:
        """Encode a value: plain values in place, all others by their index in the table."""
        if isinstance(value, np.generic):
            return {"scalar": [value.dtype.str, value.item()]}
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, list):
            return {"list": [self.node(item) for item in value]}
        if isinstance(value, Mapping) and not hasattr(value, "data_vars"):
            return {"dict": [[self.node(key), self.node(item)] for key, item in value.items()]}
        if isinstance(value, tuple) and not hasattr(value, "_fields"):
            return {"tuple": [self.node(item) for item in value]}
        if id(value) not in self._indices:
            entry = self._entry(value)
            self._alive.append(value)
            self._indices[id(value)] = len(self.objects)
            self.objects.append(entry)
        return {"object": self._indices[id(value)]}

    def _entry(self, value: Any) -> dict[str, Any]:
        """Encode an object as an entry of the table."""
        if hasattr(value, "data_vars"):
            return self._dataset(value)
        if isinstance(value, np.ndarray) or _is_jax(value):
            return self._array(value)
        cls = type(value)
        names, path = field_names(cls), object_path(cls, CLASS_MODULES)
        if names is not None and path is not None:
            return {
                "class": path,
                "fields": {name: self.node(getattr(value, name)) for name in names},
            }
        if not callable(value):
            raise TypeError(f"a {cls.__module__}.{cls.__qualname__} cannot be saved")
        path = object_path(value, FUNCTION_MODULES)
        return {"unsaved": describe(value)} if path is None else {"function": path}

    def _array(self, value: Any) -> dict[str, Any]:
        array = np.asarray(value)
        if array.dtype.kind in "OU":
            return {"strings": array.tolist(), "dtype": array.dtype.str}
        name = f"{ARRAY}{len(self.arrays)}"
        self.arrays[name] = array
        return {"array": name, "jax": _is_jax(value)}

    def _dataset(self, dataset: Any) -> dict[str, Any]:
        variables = [
            [str(name), list(map(str, data.dims)), self.node(data.values), self.node(data.attrs)]
            for name, data in dataset.variables.items()
        ]
        coords = list(map(str, dataset.coords))
        return {"dataset": variables, "coords": coords, "attrs": self.node(dataset.attrs)}


class _Decoder:
    """Decoder with the objects restored so far."""

    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
        self.arrays = arrays
        self.objects: list[Any] = []

    def node(self, node: Any) -> Any:
        """Decode a value."""
        if not isinstance(node, dict):
            return node
        ((kind, content),) = node.items()
        if kind == "list":
            return [self.node(item) for item in content]
        if kind == "tuple":
            return tuple(self.node(item) for item in content)
        if kind == "dict":
            return {self.node(key): self.node(item) for key, item in content}
        if kind == "scalar":
            dtype, number = content
            return np.dtype(dtype).type(number)
        if kind == "object":
            return self.objects[content]
        raise ValueError(f"unknown kind of value {kind}")

    def entry(self, entry: dict[str, Any]) -> Any:
        """Decode an entry of the table of objects."""
        if "class" in entry:
            return self._instance(entry["class"], entry["fields"])
        if "array" in entry:
            return self._array(entry["array"], entry["jax"])
        if "strings" in entry:
            return np.array(entry["strings"], dtype=entry["dtype"])
        if "dataset" in entry:
            return self._dataset(entry)
        if "function" in entry:
            return find_object(entry["function"], FUNCTION_MODULES)
        return UnsavedFunction(str(entry["unsaved"]))

    def _instance(self, path: str, fields: dict[str, Any]) -> Any:
        """Create an instance without calling its class: no check runs again, no value changes."""
        cls = find_object(path, CLASS_MODULES)
        names = field_names(cls) if isinstance(cls, type) else None
        if names is None or set(names) != set(fields):
            raise Undecodable(f"contains another version of {path}")
        values = {name: self.node(fields[name]) for name in names}
        if issubclass(cls, tuple):
            return cls(**values)
        instance = object.__new__(cls)
        for name, value in values.items():
            object.__setattr__(instance, name, value)
        return instance

    def _array(self, name: str, in_jax: bool) -> Any:
        array = np.array(self.arrays[name])
        if not in_jax:
            return array
        import jax

        with jax.enable_x64(True):
            return jax.numpy.asarray(array)

    def _dataset(self, entry: dict[str, Any]) -> Any:
        import xarray as xr

        variables = {
            name: (dims, self.node(values), self.node(attributes))
            for name, dims, values, attributes in entry["dataset"]
        }
        dataset = xr.Dataset(variables, attrs=self.node(entry["attrs"]))
        return dataset.set_coords(entry["coords"])


def field_names(cls: type) -> tuple[str, ...] | None:
    """Names of the fields of a dataclass or named tuple; None for other classes."""
    if dataclasses.is_dataclass(cls):
        return tuple(field.name for field in dataclasses.fields(cls))
    return getattr(cls, "_fields", None) if issubclass(cls, tuple) else None


def find_object(path: str, allowed: tuple[str, ...]) -> Any:
    """Import ``module:name`` from one of the allowed modules, or from a module inside them."""
    module, _, name = path.partition(":")
    if not _is_within(module, allowed):
        raise ValueError(f"{path} is not in {' or '.join(allowed)}")
    return getattr(import_module(module), name)


def object_path(value: Any, allowed: tuple[str, ...]) -> str | None:
    """Return ``module:name`` if `find_object` leads from there to the value, None otherwise."""
    # Functions of JAX are public in other modules than those that define them.
    for module in (getattr(value, "__module__", None) or "", "jax.nn"):
        path = f"{module}:{getattr(value, '__name__', '')}"
        try:
            if find_object(path, allowed) is value:
                return path
        except (AttributeError, ImportError, ValueError):
            continue
    return None


def _is_within(module: str, allowed: tuple[str, ...]) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in allowed)


def _is_jax(value: Any) -> bool:
    """Recognize arrays of JAX without importing JAX."""
    return type(value).__module__.partition(".")[0] in ("jax", "jaxlib") and hasattr(value, "dtype")
