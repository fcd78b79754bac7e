"""Settings as frozen objects that public functions take as keywords."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
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
            raise TypeError(f"unknown keyword {name!r}; settings are {', '.join(known)}")
    return replace(settings, **changes)
