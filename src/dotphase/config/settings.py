"""Settings as frozen objects that public functions take as keywords."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    S = TypeVar("S", bound=DataclassInstance)
else:
    S = TypeVar("S")


def changed(settings: S, changes: Mapping[str, Any]) -> S:
    """The settings with some of them changed; a `TypeError` names those that there are."""
    known = [field.name for field in fields(settings)]
    for name in changes:
        if name not in known:
            near = [full for full in known if full.endswith(f"_{name}")]
            near += get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"settings are {', '.join(known)}"
            raise TypeError(f"unknown keyword {name!r}; {hint}")
    return replace(settings, **changes)
