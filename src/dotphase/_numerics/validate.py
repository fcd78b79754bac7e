"""Checks on single values, shared by the model, the engines and the command line."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
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
