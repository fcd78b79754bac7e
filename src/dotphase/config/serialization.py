"""Results as plain values that JSON can hold."""

from __future__ import annotations

import math
from typing import Any


def fields_without(result: Any, *names: str) -> dict[str, Any]:
    """The fields of a dataclass by name, but for some."""
    return {name: value for name, value in vars(result).items() if name not in names}


def plain(value: Any) -> Any:
    """Dictionaries, lists, numbers and strings; numbers that are not finite become None."""
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
