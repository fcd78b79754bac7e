"""What was asked for: as it is written down, in a few characters, and how it differs. Light."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def as_asked(asked: Mapping[str, Any]) -> dict[str, Any]:
    """A question as it compares with one that was read back."""
    plain: dict[str, Any] = json.loads(json.dumps(dict(asked), default=_plain))
    return plain


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)


def digest(asked: Mapping[str, Any]) -> str:
    """A short name for a question, as part of the name of a file."""
    text = json.dumps(as_asked(asked), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def difference(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> str | None:
    """In words, in what two questions differ; None if they are the same."""
    return "; ".join(_changes(found, wanted, "")) or None


def _changes(found: Mapping[str, Any], wanted: Mapping[str, Any], prefix: str) -> list[str]:
    changes = []
    for name in {**found, **wanted}:
        there, here = found.get(name), wanted.get(name)
        if isinstance(there, Mapping) and isinstance(here, Mapping):
            changes += _changes(there, here, f"{prefix}{name}.")
        elif there != here:
            changes.append(f"{prefix}{name}: {_brief(there)} there, {_brief(here)} here")
    return changes


def _brief(value: Any) -> str:
    """A value in a few characters; long lists by their ends."""
    if value is None:
        return "nothing"
    if isinstance(value, list) and len(value) > 4:
        return f"{len(value)} values from {json.dumps(value[0])} to {json.dumps(value[-1])}"
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."
