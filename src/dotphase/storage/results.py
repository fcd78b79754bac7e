"""Results as files: `Result` is the base of all result classes, `load` reads them again.

A file is netCDF. Its root is the labeled dataset of the result with provenance, for xarray and
other programs. The group `FIELDS` contains every field of the result without loss
(`dotphase.storage.encoding`); `load` reads that group.

A result class becomes a saved one in two steps: it is a dataclass that inherits from `Result`, and
`SAVED_CLASSES` names its module. A class overrides `dataset` for dimensions with names; `save` and
`from_dataset` need no code of their own.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

import dotphase
from dotphase.config.formatting import Description, Printable
from dotphase.errors import InvalidInput
from dotphase.storage import encoding, files
from dotphase.storage.labels import add_default_labels, add_labels
from dotphase.storage.paths import as_path, check_writable
from dotphase.storage.provenance import attribute, provenance

if TYPE_CHECKING:
    import xarray as xr

#: Version of the layout of files.
FORMAT_VERSION = 1
#: Group of a file with the encoded fields, and the variable with their JSON text.
FIELDS, TEXT = "fields", "text"
#: Fields that become attributes of datasets, not variables.
DESCRIBED = ("model", "settings")
#: Number of fields in the one-line description of a result.
MAX_SHOWN = 8
#: Attributes of the root.
VERSION, CLASS, CHECKSUM = "format_version", "class", "checksum"
#: Modules of the classes that files may contain, by the name of the class.
SAVED_CLASSES = {
    "Baseline": "dotphase.baselines.fit",
    "BayesOptimal": "dotphase.theory.bayes",
    "BranchEnd": "dotphase.theory.spinodal",
    "Broken": "dotphase.theory.one_rsb.result",
    "BrokenCritical": "dotphase.theory.one_rsb.critical",
    "Complexity": "dotphase.theory.one_rsb.result",
    "Critical": "dotphase.theory.critical",
    "CriticalLine": "dotphase.theory.critical_line",
    "Curvature": "dotphase.training.hessian",
    "Derivative": "dotphase.theory.sensitivity",
    "Emergence": "dotphase.histogram.free_networks",
    "Experiment": "dotphase.histogram.result",
    "Flow": "dotphase.theory.gradient_flow",
    "HeadShares": "dotphase.heads.shares",
    "Landscape": "dotphase.theory.landscape",
    "LayeredBayes": "dotphase.theory.layered_posterior",
    "LossBetween": "dotphase.histogram.interpolation",
    "MessagePassing": "dotphase.gamp.result",
    "NumericalBayes": "dotphase.theory.numerical_posterior",
    "OnePass": "dotphase.dmft.online",
    "Optimum": "dotphase.theory.optimal",
    "QueryKeyForm": "dotphase.heads.solvable",
    "Solution": "dotphase.theory.solution",
    "Solvable": "dotphase.heads.solvable",
    "Training": "dotphase.training.result",
    "Trajectory": "dotphase.dmft.result",
    "Transition": "dotphase.theory.transitions",
    "WideBayes": "dotphase.extensive.bayes",
    "WideSolution": "dotphase.extensive.solve",
    "WideTraining": "dotphase.extensive.training",
}


class Result(Printable):
    """Base of result classes: one-line `repr`, a dataset with labels, files that `dp.load` reads.

    Results are equal only to themselves, and can be hashed, pickled and copied. Declare them with
    ``@dataclass(frozen=True, eq=False, repr=False)``.

    Examples
    --------
    >>> training = dp.train(dp.positional_semantic(), alpha=2.0, d=40, seeds=2)
    >>> path = training.save("training.nc")
    >>> dp.load(path).mean == training.mean
    True
    """

    #: Dimensions of array fields in the dataset; others have dimensions of their own.
    dimensions: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    #: Long names of fields that are not in `dotphase.storage.labels`.
    long_names: ClassVar[Mapping[str, str]] = {}

    @property
    def description(self) -> Description:
        """Numbers and short texts of the fields."""
        shown = [
            f"{name} = {value:.6g}" if _is_number(value) else f"{name} = {value}"
            for name, value in _fields(self).items()
            if _is_number(value) or isinstance(value, bool) or (isinstance(value, str) and value)
        ]
        return Description(", ".join(shown[:MAX_SHOWN]))

    def to_dict(self) -> dict[str, Any]:
        """Return the fields and those of the settings, ready for JSON.

        The model and fields declared with ``repr=False`` are left out.
        """
        fields: Any = dataclasses.fields(self)  # type: ignore[arg-type]
        hidden = {*DESCRIBED, *(field.name for field in fields if not field.repr)}
        return {name: value for name, value in _all_fields(self).items() if name not in hidden}

    def dataset(self) -> xr.Dataset:
        """Return all numbers and arrays as a dataset with labels, short fields as attributes.

        Entries of a dictionary such as `stderr` become variables such as ``theta_stderr``.
        """
        import xarray as xr

        variables: dict[str, Any] = {}
        for name, value in _numeric_parts(_fields(self)).items():
            default = tuple(f"{name}_{axis}" for axis in range(np.ndim(value)))
            variables[name] = (self.dimensions.get(name, default), value)
        dataset = add_labels(xr.Dataset(variables, attrs=_provenance(self)))
        for name, long_name in self.long_names.items():
            dataset[name].attrs.update(long_name=long_name, units="1")
        return add_default_labels(dataset)

    def save(self, path: str | Path) -> Path:
        """Write the result to a netCDF file, which `dp.load` reads; return its path.

        It ends in .nc; an existing file is replaced.
        """
        return save_result(self, path)

    @classmethod
    def from_dataset(cls, dataset: xr.Dataset) -> Self:
        """Restore a result from its encoded fields, the group "fields" of a file."""
        arrays = {str(name): data.values for name, data in dataset.variables.items()}
        result = encoding.decode(str(arrays.pop(TEXT)), arrays)
        if type(result) is not cls:
            raise encoding.Undecodable(f"contains a {type(result).__name__}, not a {cls.__name__}")
        return result


def save_result(result: Result, path: str | Path) -> Path:
    """Write a result to a netCDF file; return its path."""
    import xarray as xr

    target = check_writable("path", path, (".nc",))
    text, arrays = encoding.encode(result)
    variables: dict[str, Any] = {TEXT: ((), text)}
    for name, array in arrays.items():
        dims = [f"{name}_{axis}" for axis in range(array.ndim)]
        # Without a fill value every NaN keeps its bits.
        variables[name] = (dims, array, {}, {"_FillValue": None})
    root = result.dataset()
    header = {CLASS: type(result).__name__, VERSION: FORMAT_VERSION}
    attributes = _provenance(result) | dict(root.attrs) | header
    attributes |= {CHECKSUM: _checksum(text, arrays)}
    root = root.assign_attrs({name: attribute(value) for name, value in attributes.items()})
    tree = xr.DataTree.from_dict({"/": root, f"/{FIELDS}": xr.Dataset(variables)})
    content = tree.to_netcdf(engine="h5netcdf")  # in memory: HDF5 crashes on a full disk
    with files.atomic_write(target) as temporary:
        temporary.write_bytes(content)
    return target


def load(path: str | Path) -> Any:
    """Read a result that was written by its method ``save``.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    Result
        An equal result of the same class. Functions of your own in its model are not in the file;
        calling them raises `InvalidInput`.

    Examples
    --------
    >>> training = dp.train(dp.positional_semantic(), alpha=2.0, d=40, seeds=2)
    >>> path = training.save("training.nc")
    >>> dp.load(path).runs[0].test_error == training.runs[0].test_error
    True
    """
    file = as_path("path", path)
    if not file.is_file():
        raise InvalidInput("path", str(path), "must be a file written by .save()")
    root, fields = _read(file)
    result_class = _check_header(file, root)
    try:
        arrays = {str(name): data.values for name, data in fields.variables.items()}
        if _checksum(str(arrays.pop(TEXT)), arrays) != root.get(CHECKSUM):
            raise encoding.Undecodable("is damaged (its checksum differs)")
        return result_class.from_dataset(fields)
    except KeyError:
        raise _refused(file, "is damaged (parts are missing)") from None
    except encoding.Undecodable as error:
        raise _refused(file, str(error)) from None


def _read(file: Path) -> tuple[dict[str, Any], xr.Dataset]:
    """Return the attributes of the root of a file, and its encoded fields."""
    import h5py
    import xarray as xr

    try:
        with h5py.File(file, "r") as opened:
            is_result = CLASS in opened.attrs and VERSION in opened.attrs and FIELDS in opened
        if is_result:
            with xr.open_dataset(file, engine="h5netcdf") as root:
                attributes = dict(root.attrs)
            with xr.open_dataset(
                file, engine="h5netcdf", group=FIELDS, mask_and_scale=False
            ) as fields:
                return attributes, fields.load()
    except files.UNREADABLE:
        pass
    raise _refused(file, "is not a readable result of dotphase")


def _check_header(file: Path, attributes: Mapping[str, Any]) -> type[Result]:
    """Return the class of the result in a file; `InvalidInput` if this version cannot read it."""
    version, name = attributes[VERSION], str(attributes[CLASS])
    if version != FORMAT_VERSION:
        software = attributes.get("software", "another version of dotphase")
        rule = f"has format_version {version} ({software}); allowed is {FORMAT_VERSION}"
        raise InvalidInput("path", str(file), rule)
    if name not in SAVED_CLASSES:
        matches = get_close_matches(name, SAVED_CLASSES, n=1)
        hint = f" (did you mean {matches[0]}?)" if matches else ""
        rule = f"contains the unknown class {name!r}{hint}; allowed are {', '.join(SAVED_CLASSES)}"
        raise InvalidInput("path", str(file), rule)
    return getattr(import_module(SAVED_CLASSES[name]), name)


def _refused(file: Path, reason: str) -> InvalidInput:
    rule = f"{reason}; allowed are files written by .save() of dotphase {dotphase.__version__}"
    return InvalidInput("path", str(file), rule)


def _checksum(text: str, arrays: Mapping[str, np.ndarray]) -> str:
    checksum = hashlib.blake2b(text.encode(), digest_size=16)
    for name in sorted(arrays):
        checksum.update(np.ascontiguousarray(arrays[name]).tobytes())
    return checksum.hexdigest()


def _fields(result: Any) -> dict[str, Any]:
    return {field.name: getattr(result, field.name) for field in dataclasses.fields(result)}


def _all_fields(result: Any) -> dict[str, Any]:
    """Return the fields of a result, and those of its settings."""
    values = _fields(result)
    settings = values.get("settings")
    return values | (_fields(settings) if dataclasses.is_dataclass(settings) else {})


def _is_number(value: Any) -> bool:
    return isinstance(value, float | int | np.number) and not isinstance(value, bool)


def _numeric_parts(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers and arrays of fields and of their dictionaries, tuples and dataclasses."""
    parts: dict[str, Any] = {}
    for name, value in fields.items():
        if isinstance(value, np.ndarray) or _is_number(value):
            parts[name] = value
        elif isinstance(value, tuple) and value and all(map(_is_number, value)):
            parts[name] = np.asarray(value)
        elif hasattr(value, "_asdict"):
            parts |= _numeric_parts(value._asdict())
        elif isinstance(value, Mapping):
            for key, item in value.items():
                nested = _numeric_parts({name: item})
                parts |= {f"{key}_{part}": number for part, number in nested.items()}
        elif name not in DESCRIBED and _is_plain_dataclass(value):
            parts |= _numeric_parts(_fields(value))
    return {name: value for name, value in parts.items() if np.asarray(value).dtype.kind in "fiu"}


def _is_plain_dataclass(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, Result)


def _provenance(result: Result) -> dict[str, Any]:
    """Provenance of a result: its model, its settings and its short fields."""
    values = _all_fields(result)
    short = {
        name: value
        for name, value in values.items()
        if isinstance(value, bool | int | float | str) and np.asarray(value).dtype.kind != "O"
    }
    return provenance(values.get("model"), **short)
