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
    rules = ["a finite number"]
    if above is not None:
        rules.append(f"> {above:g}")
    if at_least is not None:
        rules.append(f">= {at_least:g}")
    if at_most is not None:
        rules.append(f"<= {at_most:g}")
    allowed = "must be " + " and ".join([" ".join(rules[:2]), *rules[2:]])
    if isinstance(value, str | bytes):
        raise InvalidInput(field, value, allowed)
    try:
        result = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InvalidInput(field, value, allowed) from None
    inside = (
        math.isfinite(result)
        and (above is None or result > above)
        and (at_least is None or result >= at_least)
        and (at_most is None or result <= at_most)
    )
    if not inside or isinstance(value, bool):
        raise InvalidInput(field, value, allowed)
    return result


def whole(field: str, value: object, *, at_least: int, at_most: int | None = None) -> int:
    """`value` as an integer inside the bounds given, or `InvalidInput`."""
    allowed = f"must be a whole number >= {at_least}"
    if at_most is not None:
        allowed += f" and <= {at_most}"
    try:
        result = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise InvalidInput(field, value, allowed) from None
    outside = result < at_least or (at_most is not None and result > at_most)
    if outside or isinstance(value, bool):
        raise InvalidInput(field, value, allowed)
    return result


def choice(field: str, value: object, options: Iterable[str]) -> str:
    """`value` if it is one of `options`, or `InvalidInput`."""
    names = list(options)
    if value not in names:
        raise InvalidInput(field, value, "must be one of " + ", ".join(names))
    return str(value)


def unknown(what: str, name: str, options: Iterable[str]) -> str:
    """A rule for a name that there is not: what was probably meant, or all there is."""
    names = list(options)
    near = get_close_matches(name, names, n=1)
    listed = "known are " + ", ".join(names) if names else "there are none"
    return f"is not a {what}; {f'did you mean {near[0]}?' if near else listed}"


def array(field: str, value: object, shape: tuple[int, ...]) -> np.ndarray:
    """`value` as a finite float64 array of `shape`, or `InvalidInput`."""
    import numpy as np  # only here: the command line checks its input before it is loaded

    allowed = f"must be finite numbers of shape {shape}"
    try:
        result = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(field, value, allowed) from None
    if result.shape != shape or not np.all(np.isfinite(result)):
        raise InvalidInput(field, value, allowed)
    return result


def grid(field: str, values: object, *, increasing: bool = True) -> np.ndarray:
    """`values` as one or more finite numbers, increasing or just different, or `InvalidInput`."""
    import numpy as np

    order = "increasing" if increasing else "different"
    allowed = f"must be one or more {order} finite numbers"
    try:
        result = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(field, values, allowed) from None
    good = result.ndim == 1 and result.size > 0 and bool(np.all(np.isfinite(result)))
    steps = np.diff(result if increasing else np.sort(result)) if good else np.zeros(1)
    if not np.all(steps > 0):
        raise InvalidInput(field, values, allowed)
    return result
