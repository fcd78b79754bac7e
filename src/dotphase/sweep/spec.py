"""What a study is: an engine, what is fixed, what is swept, seeds; and how a file says so."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from dotphase._numerics import validate
from dotphase.errors import InvalidInput
from dotphase.sweep.tasks import ENGINES, REQUIRED, Parameter, number

#: Keys of a specification, and of a swept parameter that is not a list.
KEYS = ("engine", "fixed", "sweep", "seeds")
GRID_KEYS = ("start", "stop", "count", "spacing")
#: Most values of one parameter, and most points of a study.
MOST_VALUES, MOST_POINTS = 100_000, 100_000_000


@dataclass(frozen=True)
class Study:
    """A grid of points: every combination of the swept values and the seeds.

    Parameters
    ----------
    engine : {"theory", "train", "amp", "critical"}
        What a point computes, see `dotphase.sweep.tasks`.
    fixed : mapping, optional
        Parameters that are the same everywhere. Those not named have their defaults.
    sweep : mapping, optional
        Parameters that vary: each a sequence of different values, or a mapping with
        ``start``, ``stop``, ``count`` and possibly ``spacing`` ("linear" or "log").
    seeds : int or sequence of int
        A number N stands for 0, ..., N - 1. The seed is a dimension of its own.

    Notes
    -----
    Points are numbered with the seed running fastest, then the last swept parameter. What
    a point computes follows from its parameters and its seed alone.
    """

    engine: str
    fixed: Mapping[str, Any]
    sweep: Mapping[str, tuple[Any, ...]]
    seeds: tuple[int, ...]

    def __init__(
        self,
        engine: str,
        fixed: Mapping[str, Any] | None = None,
        sweep: Mapping[str, Any] | None = None,
        seeds: int | Sequence[int] = 1,
    ) -> None:
        engine = _closest("engine", engine, ENGINES)
        known = ENGINES[engine].parameters
        fixed, sweep = dict(fixed or {}), dict(sweep or {})
        for table, given in (("fixed", fixed), ("sweep", sweep)):
            for name in given:
                _check_name(f"{table}.{name}", name, known, engine)
        for name in sweep:
            if name in fixed:
                raise InvalidInput(f"sweep.{name}", sweep[name], "must not be fixed as well")
        for name, parameter in known.items():
            if parameter.default is REQUIRED and name not in fixed and name not in sweep:
                raise InvalidInput(name, None, f"must be fixed or swept in a {engine} study")
        settled = {
            name: _value(f"fixed.{name}", fixed[name], parameter)
            if name in fixed
            else parameter.default
            for name, parameter in known.items()
            if name not in sweep
        }
        swept = {
            name: _values(f"sweep.{name}", given, known[name]) for name, given in sweep.items()
        }
        object.__setattr__(self, "engine", engine)
        object.__setattr__(self, "fixed", settled)
        object.__setattr__(self, "sweep", swept)
        object.__setattr__(self, "seeds", _seeds(seeds))
        if self.size > MOST_POINTS:
            raise InvalidInput("points", self.size, f"must be <= {MOST_POINTS} in all")

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
        """The study as plain values; `Study(**study.to_dict())` is the same study."""
        return {
            "engine": self.engine,
            "fixed": {name: value for name, value in self.fixed.items() if value is not None},
            "sweep": {name: list(values) for name, values in self.sweep.items()},
            "seeds": list(self.seeds),
        }


def read_spec(path: str | Path) -> Study:
    """A study from a TOML file.

    The file has the keys ``engine`` and ``seeds`` and the tables ``[fixed]`` and
    ``[sweep]``, which mean what the arguments of `Study` mean. Files that it names are
    looked for beside it.
    """
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InvalidInput("spec", str(path), f"must be a file to read ({reason})") from None
    except UnicodeDecodeError:
        raise InvalidInput("spec", str(path), "must be a text file in UTF-8") from None
    try:
        given = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput("spec", str(path), f"must be valid TOML: {error}") from None
    for key in given:
        if key not in KEYS:
            raise InvalidInput("spec", key, _unknown("key", key, KEYS))
    if "engine" not in given:
        raise InvalidInput("engine", None, "must be one of " + ", ".join(ENGINES))
    for table in ("fixed", "sweep"):
        if not isinstance(given.get(table, {}), dict):
            raise InvalidInput(table, given[table], f"must be a table, [{table}]")
    for table in ("fixed", "sweep"):
        mixing = given.get(table, {}).get("mixing")
        if isinstance(mixing, str):
            given[table]["mixing"] = _beside(file, mixing)
        elif isinstance(mixing, list):
            given[table]["mixing"] = [_beside(file, each) for each in mixing]
    return Study(**given)


def _beside(file: Path, name: Any) -> Any:
    is_file = isinstance(name, str) and name.endswith(".json")
    return str(file.parent / name) if is_file else name


def _check_name(field: str, name: str, known: Mapping[str, Parameter], engine: str) -> None:
    if name in ("seed", "seeds"):
        raise InvalidInput(field, name, "must be given as seeds, outside of the tables")
    if name not in known:
        rule = _unknown(f"parameter of the {engine} engine", name, known)
        raise InvalidInput(field, name, rule)


def _closest(field: str, value: Any, options: Iterable[str]) -> str:
    if not isinstance(value, str) or value not in options:
        raise InvalidInput(field, value, _unknown(field, str(value), options))
    return value


def _unknown(what: str, name: str, options: Iterable[str]) -> str:
    """A rule that names what was probably meant, or all there is."""
    names = list(options)
    near = get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]}?" if near else "known are " + ", ".join(names)
    return f"is not a {what}; {hint}"


def _value(field: str, value: Any, parameter: Parameter) -> Any:
    return parameter.check(field, value)


def _values(field: str, given: Any, parameter: Parameter) -> tuple[Any, ...]:
    if isinstance(given, Mapping):
        given = _grid(field, given)
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise InvalidInput(field, given, "must be a list of values or start, stop and count")
    listed = given.tolist() if hasattr(given, "tolist") else list(given)
    if not 1 <= len(listed) <= MOST_VALUES:
        raise InvalidInput(field, listed, f"must have between 1 and {MOST_VALUES} values")
    values = tuple(_value(field, value, parameter) for value in listed)
    if len({json.dumps(value) for value in values}) != len(values):
        raise InvalidInput(field, listed, "must have no value twice")
    return values


def _grid(field: str, given: Mapping[str, Any]) -> list[float]:
    """Evenly spaced numbers from start to stop, both included."""
    for key in given:
        if key not in GRID_KEYS:
            raise InvalidInput(f"{field}.{key}", key, _unknown("key of a grid", key, GRID_KEYS))
    for key in ("start", "stop", "count"):
        if key not in given:
            raise InvalidInput(field, dict(given), f"must have {key} as well")
    count = validate.whole(f"{field}.count", given["count"], at_least=1, at_most=MOST_VALUES)
    spacing = validate.choice(f"{field}.spacing", given.get("spacing", "linear"), ("linear", "log"))
    bounds = {"above": 0.0} if spacing == "log" else {}
    first, last = (number(**bounds)(f"{field}.{key}", given[key]) for key in ("start", "stop"))
    if count == 1 and first != last:
        raise InvalidInput(f"{field}.count", count, "must be > 1 when start differs from stop")
    steps = [k / (count - 1) for k in range(count)] if count > 1 else [0.0]
    if spacing == "log":
        values = [first * (last / first) ** step for step in steps]
        values[-1] = last
    else:
        values = [first + (last - first) * step for step in steps]
    whole = all(isinstance(given[key], int) for key in ("start", "stop"))
    # A grid such as 100, 200, ..., 500 serves parameters that are whole numbers.
    return [int(value) for value in values] if whole and all(map(_whole, values)) else values


def _whole(value: float) -> bool:
    return value.is_integer()


def _seeds(given: Any) -> tuple[int, ...]:
    most = 2**32 - 1
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        return tuple(range(validate.whole("seeds", given, at_least=1, at_most=MOST_POINTS)))
    seeds = tuple(validate.whole("seeds", seed, at_least=0, at_most=most) for seed in given)
    if not seeds or len(set(seeds)) != len(seeds):
        raise InvalidInput("seeds", list(seeds), "must be a count or different whole numbers >= 0")
    return seeds
