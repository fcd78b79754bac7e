"""Serialize, hash and compare the configurations of runs.

A stored result is used again only if its configuration equals the requested one.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

#: Error messages show texts up to this length, and lists up to this number of items.
MAX_TEXT, MAX_ITEMS = 60, 4


def to_json(config: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a configuration to the values that JSON returns when it is read back."""
    plain: dict[str, Any] = json.loads(json.dumps(dict(config), default=_to_plain))
    return plain


def _to_plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)


def config_hash(config: Mapping[str, Any]) -> str:
    """Return 12 hexadecimal digits that identify a configuration in the name of a file.

    Examples
    --------
    >>> dp.results.config_hash({"alphas": [1.0, 2.0], "d": 1000})
    'b60253b9dcbf'
    """
    text = json.dumps(to_json(config), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def config_diff(stored: Mapping[str, Any], requested: Mapping[str, Any]) -> str | None:
    """Describe the difference between two configurations; None if they are equal."""
    return "; ".join(_changes(stored, requested, "")) or None


def _changes(stored: Mapping[str, Any], requested: Mapping[str, Any], prefix: str) -> list[str]:
    changes = []
    for name in {**stored, **requested}:
        old, new = stored.get(name), requested.get(name)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            changes += _changes(old, new, f"{prefix}{name}.")
        elif old != new:
            changes.append(f"{prefix}{name}: {_shorten(old)} stored, {_shorten(new)} requested")
    return changes


def _shorten(value: Any) -> str:
    """Return a short text of a value, for long lists the first and the last item."""
    if value is None:
        return "nothing"
    if isinstance(value, list) and len(value) > MAX_ITEMS:
        return f"{len(value)} values from {json.dumps(value[0])} to {json.dumps(value[-1])}"
    text = json.dumps(value)
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 3] + "..."
