"""Checks of single values, shared by the model, the engines and the command line."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING

from dotphase.errors import InvalidInput

if TYPE_CHECKING:
    import numpy as np

#: Largest integer that JSON and floating point represent exactly.
MAX_INTEGER = 2**53


def number(
    field: str,
    value: object,
    *,
    above: float | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
) -> float:
    """Return `value` as a finite float within the bounds, or raise `InvalidInput`."""
    rules = (">", above, operator.gt), (">=", at_least, operator.ge), ("<=", at_most, operator.le)
    bounds = [(sign, limit, holds) for sign, limit, holds in rules if limit is not None]
    try:
        result = math.nan if isinstance(value, str | bytes | bool) else float(value)  # type: ignore
    except (TypeError, ValueError, OverflowError):
        result = math.nan
    if math.isfinite(result) and all(holds(result, limit) for _, limit, holds in bounds):
        return result
    allowed = " and ".join(f"{sign} {limit:g}" for sign, limit, _ in bounds)
    rule = f"must be a finite number {allowed}".rstrip()
    raise InvalidInput(field, value, rule + _advice(field, value))


def _advice(field: str, value: object) -> str:
    """Name the function that takes a value which is no number."""
    if "Tracer" in type(value).__name__:
        return ", not traced by JAX: solution.derivative replaces grad, solve_many replaces vmap"
    if field == "alpha" and not isinstance(value, str) and hasattr(value, "__len__"):
        return "; curve, solve_many and grid take several"
    return ""


def integer(field: str, value: object, *, at_least: int, at_most: int | None = None) -> int:
    """Return `value` as an integer within the bounds, or raise `InvalidInput`."""
    allowed = f"must be an integer >= {at_least}"
    if at_most is not None:
        allowed += f" and <= {at_most}"
    try:
        result = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise InvalidInput(field, value, allowed) from None
    if at_most is None and result > MAX_INTEGER:
        at_most, allowed = MAX_INTEGER, f"{allowed} and <= {MAX_INTEGER}"
    outside = result < at_least or (at_most is not None and result > at_most)
    if outside or isinstance(value, bool):
        raise InvalidInput(field, value, allowed)
    return result


def log2(field: str, value: object, at_least: int, at_most: int) -> int:
    """Return `value` as log2 of a number of points, or raise `InvalidInput`."""
    try:
        return integer(field, value, at_least=at_least, at_most=at_most)
    except InvalidInput:
        allowed = f"an integer from {at_least} to {at_most} ({at_least} for {2**at_least} points)"
        rule = f"must be log2 of the number of points, {allowed}"
        raise InvalidInput(field, value, rule) from None


def choice(field: str, value: object, options: Iterable[str]) -> str:
    """Return `value` if it is one of `options`, or raise `InvalidInput`."""
    names = list(options)
    if not isinstance(value, str) or value not in names:
        raise InvalidInput(field, value, "must be one of " + ", ".join(names))
    return str(value)


def distinct_choices(field: str, values: Iterable[object], options: Iterable[str]) -> list[str]:
    """Return one or more different names of `options`, or raise `InvalidInput`."""
    names = list(options)
    try:
        items = [values] if isinstance(values, str) else list(values)
    except TypeError:
        items = []
    chosen = [item for item in items if isinstance(item, str) and item in names]
    if not chosen or len(chosen) != len(items) or len(set(chosen)) != len(chosen):
        raise InvalidInput(
            field, values, "must be one or more different names of " + ", ".join(names)
        )
    return chosen


def unknown_name(kind: str, name: str, options: Iterable[str]) -> str:
    """Word the rule that an unknown name breaks: its likely spelling, or all options."""
    names = list(options)
    near = get_close_matches(name, names, n=1)
    listed = "known are " + ", ".join(names) if names else "there are none"
    return f"is not a {kind}; {f'did you mean {near[0]}?' if near else listed}"


def array(field: str, value: object, shape: tuple[int, ...]) -> np.ndarray:
    """Return `value` as a finite float64 array of `shape`, or raise `InvalidInput`."""
    result = finite_array(value)
    if result is None or result.shape != shape:
        raise InvalidInput(field, value, f"must be finite numbers of shape {shape}")
    return result


def grid(field: str, values: object, *, increasing: bool = True) -> np.ndarray:
    """Return one or more increasing, or just different, numbers, or raise `InvalidInput`."""
    result = finite_array(values)
    if result is not None and result.ndim == 1 and result.size:
        ordered = result if increasing else sorted(result)
        if all(ordered[k] < ordered[k + 1] for k in range(result.size - 1)):
            return result
    order = "increasing" if increasing else "different"
    raise InvalidInput(field, values, f"must be one or more {order} finite numbers")


def finite_array(value: object) -> np.ndarray | None:
    """Return `value` as a finite float64 array, None if it cannot be one."""
    import numpy as np  # deferred: the command line validates input before NumPy is loaded

    try:
        result = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    return result if np.all(np.isfinite(result)) else None
