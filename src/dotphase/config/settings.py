"""Frozen settings objects whose fields public functions also accept as keywords."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

S = TypeVar("S", bound="DataclassInstance")


def replace_fields(settings: S, changes: Mapping[str, Any]) -> S:
    """Replace fields of `settings`; an unknown field is a `TypeError` that suggests a name."""
    names = [field.name for field in fields(settings)]
    for name in changes:
        if name not in names:
            raise unknown_keyword(name, names, "settings are")
    return replace(settings, **changes)


def unknown_keyword(name: str, names: Sequence[str], listed: str = "there are") -> TypeError:
    """Return an error that suggests the nearest of the known names, or lists them."""
    near = [full for full in names if full.endswith(f"_{name}")]
    near += get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]}?" if near else f"{listed} {', '.join(names)}"
    return TypeError(f"unknown keyword {name!r}; {hint}")
