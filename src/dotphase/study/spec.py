"""Specification of a study: task, model, fixed and swept parameters, seeds; its TOML files."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

from dotphase.config import validation
from dotphase.config.parameters import REQUIRED, Number, Parameter, parse_assignments
from dotphase.errors import InvalidInput
from dotphase.model.load import Reference
from dotphase.model.named import PAPER
from dotphase.storage.paths import as_path
from dotphase.study.tasks import TASKS

#: Keys of a specification, and of a swept parameter that is not a list.
KEYS = ("task", "model", "fixed", "sweep", "seeds")
GRID_KEYS = ("start", "stop", "count", "spacing")
#: Maximal numbers of values of a parameter and of points of a study.
MAX_VALUES, MAX_POINTS = 100_000, 10_000_000


@dataclass(frozen=True)
class Study:
    """A grid of points: every combination of the swept values and the seeds.

    Parameters
    ----------
    task : {"theory", "train", "amp", "critical", "bayes", "bayes-layers", "regression"}
        Computation at each point, see `dotphase.study.tasks`.
    fixed : mapping, optional
        Parameters of the task and the model that are the same at all points. All others have
        their defaults.
    sweep : mapping, optional
        Parameters that vary: each a sequence of different values, or a mapping with
        ``start``, ``stop``, ``count`` and possibly ``spacing`` ("linear" or "log").
    seeds : int or sequence of int
        A number N stands for 0, ..., N - 1. The seed is the last dimension.
    model : str
        Name of a model, or ``FILE.py:NAME`` as in `load_model`. The file is executed by this
        process and by its workers. A study belongs to the text of the file.

    Notes
    -----
    The index of a point changes fastest with the seed, then with the last swept parameter. The
    results of a point depend on its parameters and its seed alone.

    Examples
    --------
    >>> import dotphase as dp
    >>> dp.Study("theory", sweep={"alpha": [1.0, 1.5]}, seeds=2).size
    4
    """

    task: str
    model: Reference | None
    fixed: Mapping[str, Any]
    sweep: Mapping[str, tuple[Any, ...]]
    seeds: tuple[int, ...]

    def __init__(
        self,
        task: str,
        fixed: Mapping[str, Any] | None = None,
        sweep: Mapping[str, Any] | None = None,
        seeds: int | Sequence[int] = 1,
        model: str | Reference = PAPER,
    ) -> None:
        if not isinstance(task, str) or task not in TASKS:
            meant = task if isinstance(task, str) else ""
            raise InvalidInput("task", task, validation.unknown_name("task", meant, TASKS))
        reference, parameters = _parameters(task, model)
        for table, values in (("fixed", fixed), ("sweep", sweep)):
            if values is not None and not isinstance(values, Mapping):
                raise InvalidInput(table, values, "must be values by name")
        fixed, sweep = dict(fixed or {}), dict(sweep or {})
        _check_names(task, fixed, sweep, parameters)
        checked = {
            name: parameter.type.check(f"fixed.{name}", fixed[name])
            if name in fixed
            else parameter.default
            for name, parameter in parameters.items()
            if name not in sweep
        }
        swept = {name: _values(f"sweep.{name}", sweep[name], parameters[name]) for name in sweep}
        for names, check in reference.find().rules if reference is not None else ():
            axes = [swept.get(name, (checked.get(name),)) for name in names]
            for combination in product(*axes):
                check(*combination)
        self._set(task, reference, checked, swept, _seeds(seeds))
        if self.size > MAX_POINTS:
            raise InvalidInput("points", self.size, f"must be <= {MAX_POINTS} in all")

    def _set(self, *values: Any) -> None:
        for name, value in zip(("task", "model", "fixed", "sweep", "seeds"), values, strict=True):
            object.__setattr__(self, name, value)

    @classmethod
    def restore(cls, stored: Mapping[str, Any]) -> Study:
        """Restore a study from `to_dict`; the file of its model is not executed."""
        fields = dict(stored)
        digest = fields.pop("model_text", None)
        if digest is None:
            return cls(**fields)
        file, _, name = fields["model"].rpartition(":")
        reference = Reference(name, file, digest)
        study = object.__new__(cls)
        swept = {name: tuple(values) for name, values in fields["sweep"].items()}
        study._set(fields["task"], reference, fields["fixed"], swept, tuple(fields["seeds"]))
        return study

    @property
    def dimensions(self) -> dict[str, tuple[Any, ...]]:
        """Names and values of the axes of the grid, slowest first."""
        return {**self.sweep, "seed": self.seeds}

    @property
    def axes(self) -> dict[str, tuple[Any, ...]]:
        """Values of all parameters and the seed, one of each fixed parameter; slowest first."""
        return {name: (value,) for name, value in self.fixed.items()} | self.dimensions

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes of the grid."""
        return tuple(len(values) for values in self.dimensions.values())

    @property
    def size(self) -> int:
        """Number of points."""
        return math.prod(self.shape)

    def point(self, index: int) -> tuple[dict[str, Any], int]:
        """Return all parameters and the seed of a point."""
        labels = self.labels(index)
        seed = labels.pop("seed")
        return {**self.fixed, **labels}, seed

    def labels(self, index: int) -> dict[str, Any]:
        """Return the swept values and the seed of a point."""
        labels = {}
        for name, values in reversed(self.dimensions.items()):
            index, position = divmod(index, len(values))
            labels[name] = values[position]
        return dict(reversed(labels.items()))

    def to_dict(self) -> dict[str, Any]:
        """Return the study as values for JSON and `Study.restore`; files by name and hash."""
        plain: dict[str, Any] = {
            "task": self.task,
            "fixed": {name: value for name, value in self.fixed.items() if value is not None},
            "sweep": {name: list(values) for name, values in self.sweep.items()},
            "seeds": list(self.seeds),
        }
        if self.model not in (None, Reference(PAPER)):
            plain |= {"model": str(self.model)}
        if self.model and self.model.file:
            plain |= {"model_text": self.model.digest}
        return plain

    def arguments(self, index: int) -> dict[str, Any]:
        """Return the arguments of `dotphase.study.tasks.compute_point` for a point."""
        parameters, seed = self.point(index)
        arguments = {"task": self.task, "index": index, "parameters": parameters, "seed": seed}
        return {**arguments, "model": self.model and asdict(self.model)}


def read_spec(path: str | Path, model: str | None = None, settings: Iterable[str] = ()) -> Study:
    """Read a study from a TOML file.

    The file has the keys ``task``, ``model`` and ``seeds`` and the tables ``[fixed]`` and
    ``[sweep]``, as the arguments of `Study`. Paths in it are relative to its folder; the file of a
    model is executed.

    Parameters
    ----------
    path : path
        The file.
    model : str, optional
        Replaces ``model`` of the file.
    settings : iterable of str
        Further fixed parameters of the model, as ``name=value``.

    Examples
    --------
    >>> from pathlib import Path
    >>> text = 'task = "regression"\\nsweep = {alpha = [0.5, 2.0]}'
    >>> _ = Path("alphas.toml").write_text(text)
    >>> dp.read_spec("alphas.toml").size
    2
    """
    file = as_path("spec", path)
    try:
        text = file.read_text(encoding="utf-8-sig")
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InvalidInput("spec", str(path), f"must be a readable file ({reason})") from None
    except ValueError:
        raise InvalidInput("spec", str(path), "must be a text file in UTF-8") from None
    try:
        spec = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput("spec", str(path), f"must be valid TOML: {error}") from None
    for key in spec:
        if key not in KEYS:
            raise InvalidInput("spec", key, validation.unknown_name("key", key, KEYS))
    if "task" not in spec:
        raise InvalidInput("task", None, "must be one of " + ", ".join(TASKS))
    for table in ("fixed", "sweep"):
        values = spec.setdefault(table, {})
        if not isinstance(values, dict):
            raise InvalidInput(table, values, f"must be a table, [{table}]")
        mixing = values.get("mixing")
        if isinstance(mixing, str):
            values["mixing"] = _resolve_path(file, mixing)
        elif isinstance(mixing, list):
            values["mixing"] = [_resolve_path(file, matrix) for matrix in mixing]
    if model is not None:
        spec["model"] = Reference.parse(model)
    elif "model" in spec:
        spec["model"] = Reference.parse(spec["model"], file.parent)
    if settings:
        parameters = spec.get("model", Reference(PAPER)).find().parameters
        spec["fixed"] |= parse_assignments(settings, parameters, "the model")
    return Study(**spec)


def _check_names(
    task: str, fixed: Mapping[str, Any], sweep: Mapping[str, Any], parameters: Mapping[str, Any]
) -> None:
    """Refuse unknown, duplicate and missing names of parameters."""
    for field in [f"fixed.{name}" for name in fixed] + [f"sweep.{name}" for name in sweep]:
        name = field.partition(".")[2]
        if name in ("seed", "seeds"):
            raise InvalidInput(field, name, "must be given as seeds, outside of the tables")
        if name not in parameters:
            rule = validation.unknown_name(f"parameter of a {task} study", name, parameters)
            raise InvalidInput(field, name, rule)
    for name in sweep:
        if name in fixed:
            raise InvalidInput(f"sweep.{name}", sweep[name], "must not be fixed as well")
    for name, parameter in parameters.items():
        if parameter.default is REQUIRED and name not in fixed and name not in sweep:
            raise InvalidInput(name, None, f"must be fixed or swept in a {task} study")


def _parameters(task: str, model: str | Reference) -> tuple[Reference | None, dict[str, Parameter]]:
    """Return the model of a study and the parameters of its points."""
    own = dict(TASKS[task].parameters)
    reference = model if isinstance(model, Reference) else Reference.parse(model)
    if not TASKS[task].takes_model:
        if reference != Reference(PAPER):
            raise InvalidInput(
                "model", str(reference), f"must not be given: {task} has its own model"
            )
        return None, own
    table = reference.find().parameters
    for name in table:
        if name in own or name in ("seed", "seeds"):
            rule = f"must not have a parameter {name}: a {task} study has one"
            raise InvalidInput("model", str(reference), rule)
    return reference, {**table, **own}


def _resolve_path(file: Path, name: Any) -> Any:
    """Resolve the name of a JSON file in the folder of `file`; return other values unchanged."""
    is_file = isinstance(name, str) and name.endswith(".json")
    return str(file.parent / name) if is_file else name


def _values(field: str, entry: Any, parameter: Parameter) -> tuple[Any, ...]:
    """Check the values of a swept parameter."""
    if isinstance(entry, Mapping):
        entry = _grid(field, entry)
    if isinstance(entry, str | bytes) or not isinstance(entry, Iterable):
        raise InvalidInput(field, entry, "must be a list of values or start, stop and count")
    items = entry.tolist() if hasattr(entry, "tolist") else list(entry)
    if not 1 <= len(items) <= MAX_VALUES:
        raise InvalidInput(field, items, f"must have between 1 and {MAX_VALUES} values")
    values = tuple(parameter.type.check(field, value) for value in items)
    if len({json.dumps(value) for value in values}) != len(values):
        raise InvalidInput(field, items, "must have no value twice")
    return values


def _grid(field: str, table: Mapping[str, Any]) -> list[float]:
    """Return evenly spaced numbers from start to stop, both included."""
    for key in table:
        if key not in GRID_KEYS:
            rule = validation.unknown_name("key of a grid", key, GRID_KEYS)
            raise InvalidInput(f"{field}.{key}", key, rule)
    for key in ("start", "stop", "count"):
        if key not in table:
            raise InvalidInput(field, dict(table), f"must have {key} as well")
    count = validation.integer(f"{field}.count", table["count"], at_least=1, at_most=MAX_VALUES)
    spacing = table.get("spacing", "linear")
    validation.choice(f"{field}.spacing", spacing, ("linear", "log"))
    bound = Number(above=0.0) if spacing == "log" else Number()
    first, last = (bound.check(f"{field}.{key}", table[key]) for key in ("start", "stop"))
    if count == 1 and first != last:
        raise InvalidInput(f"{field}.count", count, "must be > 1 when start differs from stop")
    steps = [k / (count - 1) for k in range(count)] if count > 1 else [0.0]
    if spacing == "log":
        values = [first * (last / first) ** step for step in steps]
        values[-1] = last
    else:
        values = [first + (last - first) * step for step in steps]
    has_integer_ends = all(isinstance(table[key], int) for key in ("start", "stop"))
    # Integer parameters accept a grid such as 100, 200, ..., 500.
    if has_integer_ends and all(value.is_integer() for value in values):
        return [int(value) for value in values]
    return values


def _seeds(seeds: Any) -> tuple[int, ...]:
    """Return the seeds of a count or a sequence."""
    if isinstance(seeds, str | bytes | Mapping) or not isinstance(seeds, Iterable):
        return tuple(range(validation.integer("seeds", seeds, at_least=1, at_most=MAX_POINTS)))
    checked = tuple(
        validation.integer("seeds", seed, at_least=0, at_most=2**32 - 1) for seed in seeds
    )
    if not checked or len(set(checked)) != len(checked):
        raise InvalidInput("seeds", list(checked), "must be a count or different integers >= 0")
    return checked
