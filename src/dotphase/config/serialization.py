"""Conversion of results to the types of JSON."""

import math
from typing import Any


def fields_except(result: Any, *names: str) -> dict[str, Any]:
    """Return the fields of a dataclass by name, without some of them."""
    return {name: value for name, value in vars(result).items() if name not in names}


def to_json_types(value: Any) -> Any:
    """Convert arrays, tuples and mappings; numbers that are not finite become None.

    Examples
    --------
    >>> dp.results.to_json_types({"alpha": (1.0, float("inf"))})
    {'alpha': [1.0, None]}
    """
    if isinstance(value, dict):
        return {str(key): to_json_types(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json_types(item) for item in value]
    if hasattr(value, "tolist"):
        return to_json_types(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
