"""The published numbers, read from `published.toml`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

#: Keys of a row that are not conditions under which the number holds.
_VALUES = ("value", "spread", "low", "high", "quantity")


@dataclass(frozen=True)
class Fact:
    """One published number.

    Attributes
    ----------
    table : heading in `published.toml`
    quantity : name of the measured quantity
    at : conditions, such as ``{"omega": 0.3}``
    value : the number; the middle of a published range
    spread : standard deviation over runs, or half the width of a range; None if not published
    runs : number of averaged runs; None for solutions of equations
    kind : "equations", "runs" or "range"
    source, note : reference, and remarks on how the number was obtained
    """

    table: str
    quantity: str
    at: dict[str, Any]
    value: float
    spread: float | None
    runs: int | None
    kind: str
    source: str
    note: str

    @property
    def rounding(self) -> float:
        """Half a unit of the last digit that was published."""
        text = repr(self.value)
        digits = len(text.partition(".")[2]) if "e" not in text else 6
        return 0.5 * 10.0**-digits


@lru_cache(maxsize=1)
def published() -> dict[str, tuple[Fact, ...]]:
    """All published numbers, by table."""
    text = files("reproduction").joinpath("published.toml").read_text("utf-8")
    return {
        name: tuple(_fact(name, table_spec, row) for row in table_spec["rows"])
        for name, table_spec in tomllib.loads(text).items()
    }


def facts(table: str) -> tuple[Fact, ...]:
    """The published numbers of one table."""
    return published()[table]


def _fact(table: str, table_spec: dict[str, Any], row: dict[str, Any]) -> Fact:
    if "value" in row:
        value, spread = float(row["value"]), row.get("spread")
    else:
        value, spread = (row["low"] + row["high"]) / 2, (row["high"] - row["low"]) / 2
    return Fact(
        table=table,
        quantity=row.get("quantity", table),
        at={name: number for name, number in row.items() if name not in _VALUES},
        value=value,
        spread=spread,
        runs=table_spec.get("runs"),
        kind=table_spec["kind"],
        source=table_spec["source"],
        note=table_spec.get("note", ""),
    )
