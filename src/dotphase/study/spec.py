"""What a study is: a task, a model, what is fixed, what is swept, seeds; and how a file says so."""

from __future__ import annotations

import json
import math
import sys
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
#: What keys and parameters were called in version 0.1.
RENAMED = {"engine": "task", "points": "log2_points"}
#: Most values of one parameter, and most points of a study.
MOST_VALUES, MOST_POINTS = 100_000, 10_000_000


@dataclass(frozen=True)
class Study:
    """A grid of points: every combination of the swept values and the seeds.

    Parameters
    ----------
    task : {"theory", "train", "amp", "critical", "bayes", "regression"}
        What a point computes, see `dotphase.study.tasks`.
    fixed : mapping, optional
        Parameters of the task and the model that are the same everywhere. Those not named have
        their defaults.
    sweep : mapping, optional
        Parameters that vary: each a sequence of different values, or a mapping with
        ``start``, ``stop``, ``count`` and possibly ``spacing`` ("linear" or "log").
    seeds : int or sequence of int
        A number N stands for 0, ..., N - 1. The seed is a dimension of its own.
    model : str
        Name of a model, or ``FILE.py:NAME`` as in `load_model`: the file is run, here and by
        those who compute the points. A study is bound to the text of the file.

    Notes
    -----
    Points are numbered with the seed running fastest, then the last swept parameter. What
    a point computes follows from its parameters and its seed alone.

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
        reference, known = _parameters(task, model)
        for table, values in (("fixed", fixed), ("sweep", sweep)):
            if values is not None and not isinstance(values, Mapping):
                raise InvalidInput(table, values, "must be values by name")
        fixed, sweep = dict(fixed or {}), dict(sweep or {})
        for field in [f"fixed.{name}" for name in fixed] + [f"sweep.{name}" for name in sweep]:
            name = field.partition(".")[2]
            if name in ("seed", "seeds"):
                raise InvalidInput(field, name, "must be given as seeds, outside of the tables")
            if name not in known:
                rule = validation.unknown_name(f"parameter of a {task} study", name, known)
                raise InvalidInput(field, name, rule)
        for name in sweep:
            if name in fixed:
                raise InvalidInput(f"sweep.{name}", sweep[name], "must not be fixed as well")
        for name, parameter in known.items():
            if parameter.default is REQUIRED and name not in fixed and name not in sweep:
                raise InvalidInput(name, None, f"must be fixed or swept in a {task} study")
        settled = {
            name: parameter.type.check(f"fixed.{name}", fixed[name])
            if name in fixed
            else parameter.default
            for name, parameter in known.items()
            if name not in sweep
        }
        swept = {name: _values(f"sweep.{name}", sweep[name], known[name]) for name in sweep}
        for names, check in reference.find().rules if reference is not None else ():
            axes = [swept.get(name, (settled.get(name),)) for name in names]
            for together in product(*axes):
                check(*together)
        self._set(task, reference, settled, swept, _seeds(seeds))
        if self.size > MOST_POINTS:
            raise InvalidInput("points", self.size, f"must be <= {MOST_POINTS} in all")

    def _set(self, *values: Any) -> None:
        for name, value in zip(("task", "model", "fixed", "sweep", "seeds"), values, strict=True):
            object.__setattr__(self, name, value)

    @classmethod
    def restore(cls, stored: Mapping[str, Any]) -> Study:
        """The study that `to_dict` has written down; a file that it names is not run."""
        given = _renamed(stored, tell=False)
        for table in ("fixed", "sweep"):
            given[table] = _renamed(given[table], tell=False)
        digest = given.pop("model_text", None)
        if digest is None:
            return cls(**given)
        file, _, name = given["model"].rpartition(":")
        reference = Reference(name, file, digest)
        study = object.__new__(cls)
        swept = {name: tuple(values) for name, values in given["sweep"].items()}
        study._set(given["task"], reference, given["fixed"], swept, tuple(given["seeds"]))
        return study

    @property
    def dimensions(self) -> dict[str, tuple[Any, ...]]:
        """Names and values of the axes of the grid, slowest first."""
        return {**self.sweep, "seed": self.seeds}

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes of the grid."""
        return tuple(len(values) for values in self.dimensions.values())

    @property
    def size(self) -> int:
        """Number of points."""
        return math.prod(self.shape)

    def point(self, index: int) -> tuple[dict[str, Any], int]:
        """All parameters and the seed of a point, by its place in the grid."""
        chosen, left = {}, index
        for name, values in reversed(self.dimensions.items()):
            left, place = divmod(left, len(values))
            chosen[name] = values[place]
        seed = chosen.pop("seed")
        return {**self.fixed, **chosen}, seed

    def place(self, index: int) -> dict[str, Any]:
        """What sets a point apart: its swept values and its seed."""
        parameters, seed = self.point(index)
        return {name: parameters[name] for name in self.sweep} | {"seed": seed}

    def to_dict(self) -> dict[str, Any]:
        """The study as plain values, for `Study.restore`; of a file its name and a hash."""
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

    def question(self, index: int) -> dict[str, Any]:
        """What `dotphase.study.tasks.compute_point` is asked about a point."""
        parameters, seed = self.point(index)
        asked = {"task": self.task, "index": index, "parameters": parameters, "seed": seed}
        return {**asked, "model": self.model and asdict(self.model)}


def read_spec(path: str | Path, model: str | None = None, settings: Iterable[str] = ()) -> Study:
    """A study from a TOML file.

    The file has the keys ``task``, ``model`` and ``seeds`` and the tables ``[fixed]`` and
    ``[sweep]``, which mean what the arguments of `Study` mean. Files that it names are
    looked for beside it; that of a model is run.

    Parameters
    ----------
    path : path
        The file.
    model : str, optional
        Takes the place of the file's ``model``.
    settings : iterable of str
        Parameters of the model as ``name=value``, fixed besides those of the file.

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
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InvalidInput("spec", str(path), f"must be a file to read ({reason})") from None
    except ValueError:
        raise InvalidInput("spec", str(path), "must be a text file in UTF-8") from None
    try:
        given = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput("spec", str(path), f"must be valid TOML: {error}") from None
    given = _renamed(given)
    for key in given:
        if key not in KEYS:
            raise InvalidInput("spec", key, validation.unknown_name("key", key, KEYS))
    if "task" not in given:
        raise InvalidInput("task", None, "must be one of " + ", ".join(TASKS))
    for table in ("fixed", "sweep"):
        values = given.setdefault(table, {})
        if not isinstance(values, dict):
            raise InvalidInput(table, values, f"must be a table, [{table}]")
        values = given[table] = _renamed(values)
        mixing = values.get("mixing")
        if isinstance(mixing, str):
            values["mixing"] = _beside(file, mixing)
        elif isinstance(mixing, list):
            values["mixing"] = [_beside(file, each) for each in mixing]
    if model is not None:
        given["model"] = Reference.parse(model)
    elif "model" in given:
        given["model"] = Reference.parse(given["model"], file.parent)
    if settings:
        known = given.get("model", Reference(PAPER)).find().parameters
        given["fixed"] |= parse_assignments(settings, known, "the model")
    return Study(**given)


def _renamed(given: Mapping[str, Any], tell: bool = True) -> dict[str, Any]:
    """The same keys by their present names, with a line on stderr for each that has changed."""
    for old in RENAMED.keys() & given.keys() if tell else ():
        print(f"dotphase: {old} is called {RENAMED[old]} now", file=sys.stderr)
    return {RENAMED.get(key, key): value for key, value in given.items()}


def _parameters(task: str, model: str | Reference) -> tuple[Reference | None, dict[str, Parameter]]:
    """The model of a study, and the parameters that its points have."""
    own = dict(TASKS[task].parameters)
    reference = model if isinstance(model, Reference) else Reference.parse(model)
    if not TASKS[task].takes_model:
        if reference != Reference(PAPER):
            raise InvalidInput("model", str(reference), f"must not be given: {task} has its own")
        return None, own
    table = reference.find().parameters
    for name in table:
        if name in own or name in ("seed", "seeds"):
            rule = f"must not have a parameter {name}: a {task} study has one"
            raise InvalidInput("model", str(reference), rule)
    return reference, {**table, **own}


def _beside(file: Path, name: Any) -> Any:
    is_file = isinstance(name, str) and name.endswith(".json")
    return str(file.parent / name) if is_file else name


def _values(field: str, given: Any, parameter: Parameter) -> tuple[Any, ...]:
    if isinstance(given, Mapping):
        given = _grid(field, given)
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise InvalidInput(field, given, "must be a list of values or start, stop and count")
    listed = given.tolist() if hasattr(given, "tolist") else list(given)
    if not 1 <= len(listed) <= MOST_VALUES:
        raise InvalidInput(field, listed, f"must have between 1 and {MOST_VALUES} values")
    values = tuple(parameter.type.check(field, value) for value in listed)
    if len({json.dumps(value) for value in values}) != len(values):
        raise InvalidInput(field, listed, "must have no value twice")
    return values


def _grid(field: str, given: Mapping[str, Any]) -> list[float]:
    """Evenly spaced numbers from start to stop, both included."""
    for key in given:
        if key not in GRID_KEYS:
            rule = validation.unknown_name("key of a grid", key, GRID_KEYS)
            raise InvalidInput(f"{field}.{key}", key, rule)
    for key in ("start", "stop", "count"):
        if key not in given:
            raise InvalidInput(field, dict(given), f"must have {key} as well")
    count = validation.integer(f"{field}.count", given["count"], at_least=1, at_most=MOST_VALUES)
    spacing = validation.choice(
        f"{field}.spacing", given.get("spacing", "linear"), ("linear", "log")
    )
    bound = Number(above=0.0) if spacing == "log" else Number()
    first, last = (bound.check(f"{field}.{key}", given[key]) for key in ("start", "stop"))
    if count == 1 and first != last:
        raise InvalidInput(f"{field}.count", count, "must be > 1 when start differs from stop")
    steps = [k / (count - 1) for k in range(count)] if count > 1 else [0.0]
    if spacing == "log":
        values = [first * (last / first) ** step for step in steps]
        values[-1] = last
    else:
        values = [first + (last - first) * step for step in steps]
    whole = all(isinstance(given[key], int) for key in ("start", "stop"))
    # A grid such as 100, 200, ..., 500 serves parameters that are integers.
    whole = whole and all(value.is_integer() for value in values)
    return [int(value) for value in values] if whole else values


def _seeds(given: Any) -> tuple[int, ...]:
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        return tuple(range(validation.integer("seeds", given, at_least=1, at_most=MOST_POINTS)))
    seeds = tuple(
        validation.integer("seeds", seed, at_least=0, at_most=2**32 - 1) for seed in given
    )
    if not seeds or len(set(seeds)) != len(seeds):
        raise InvalidInput("seeds", list(seeds), "must be a count or different integers >= 0")
    return seeds
