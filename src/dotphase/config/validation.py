"""Checks on single values, shared by the model, the engines and the command line."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING, NoReturn

from dotphase.errors import InvalidInput

if TYPE_CHECKING:
    import numpy as np


#: No whole number may be larger: beyond, JSON and floating point lose digits.
LARGEST = 2**53


def refuse(field: str, value: object, allowed: str) -> NoReturn:
    """Raise `InvalidInput`."""
    raise InvalidInput(field, value, allowed)


def number(
    field: str,
    value: object,
    *,
    above: float | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
) -> float:
    """`value` as a finite float inside the bounds given, or `InvalidInput`."""
    rules = (">", above, operator.gt), (">=", at_least, operator.ge), ("<=", at_most, operator.le)
    given = [(sign, limit, holds) for sign, limit, holds in rules if limit is not None]
    try:
        result = math.nan if isinstance(value, str | bytes | bool) else float(value)  # type: ignore
    except (TypeError, ValueError, OverflowError):
        result = math.nan
    if math.isfinite(result) and all(holds(result, limit) for _, limit, holds in given):
        return result
    words = " and ".join(f"{sign} {limit:g}" for sign, limit, _ in given)
    raise InvalidInput(field, value, f"must be a finite number {words}".rstrip())


def whole(field: str, value: object, *, at_least: int, at_most: int | None = None) -> int:
    """`value` as an integer inside the bounds given, or `InvalidInput`."""
    allowed = f"must be a whole number >= {at_least}"
    if at_most is not None:
        allowed += f" and <= {at_most}"
    try:
        result = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise InvalidInput(field, value, allowed) from None
    if at_most is None and result > LARGEST:
        at_most, allowed = LARGEST, f"{allowed} and <= {LARGEST}"
    outside = result < at_least or (at_most is not None and result > at_most)
    if outside or isinstance(value, bool):
        raise InvalidInput(field, value, allowed)
    return result


def choice(field: str, value: object, options: Iterable[str]) -> str:
    """`value` if it is one of `options`, or `InvalidInput`."""
    names = list(options)
    if not isinstance(value, str) or value not in names:  # arrays cannot be looked for
        raise InvalidInput(field, value, "must be one of " + ", ".join(names))
    return str(value)


def log2(field: str, value: object, at_least: int, at_most: int) -> int:
    """`value` as log2 of a number of points, or `InvalidInput` that says so."""
    try:
        return whole(field, value, at_least=at_least, at_most=at_most)
    except InvalidInput:
        rule = f"must be log2 of the number of points, a whole number from {at_least} to {at_most}"
        raise InvalidInput(field, value, f"{rule} ({at_least} for {2**at_least} points)") from None


def unknown(what: str, name: str, options: Iterable[str]) -> str:
    """A rule for a name that there is not: what was probably meant, or all there is."""
    names = list(options)
    near = get_close_matches(name, names, n=1)
    listed = "known are " + ", ".join(names) if names else "there are none"
    return f"is not a {what}; {f'did you mean {near[0]}?' if near else listed}"


def array(field: str, value: object, shape: tuple[int, ...]) -> np.ndarray:
    """`value` as a finite float64 array of `shape`, or `InvalidInput`."""
    result = _finite(value)
    if result is None or result.shape != shape:
        raise InvalidInput(field, value, f"must be finite numbers of shape {shape}")
    return result


def grid(field: str, values: object, *, increasing: bool = True) -> np.ndarray:
    """`values` as one or more finite numbers, increasing or just different, or `InvalidInput`."""
    result = _finite(values)
    if result is not None and result.ndim == 1 and result.size:
        ordered = result if increasing else sorted(result)
        if all(ordered[k] < ordered[k + 1] for k in range(result.size - 1)):
            return result
    order = "increasing" if increasing else "different"
    raise InvalidInput(field, values, f"must be one or more {order} finite numbers")


def _finite(value: object) -> np.ndarray | None:
    """`value` as an array of finite numbers; None if it is none."""
    import numpy as np  # only here: the command line checks its input before it is loaded

    try:
        result = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    return result if np.all(np.isfinite(result)) else None


def different(field: str, values: Iterable[object], options: Iterable[str]) -> list[str]:
    """One or more names of `options`, no two the same, or `InvalidInput`."""
    known = list(options)
    try:
        given = [values] if isinstance(values, str) else list(values)
    except TypeError:
        given = []
    names = [name for name in given if isinstance(name, str) and name in known]
    if not names or len(names) != len(given) or len(set(names)) != len(names):
        raise InvalidInput(field, values, "must be different ones of " + ", ".join(known))
    return names
