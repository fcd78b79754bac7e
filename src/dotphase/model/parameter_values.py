"""Numbers of a model by name: read them, and change them.

A teacher, student or loss that is an `equinox.Module` may have a class attribute ``ranges``, the
smallest and the largest value of its numbers by name. Without it a number may be any.
"""

import math
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import equinox as eqx
import numpy as np

from dotphase.errors import InvalidInput
from dotphase.model.definition import Model

#: Parts of a model whose own numbers have names, in the order of the search.
PARTS = ("teacher", "student", "loss")


def parameter_names(model: Model) -> list[str]:
    """Names of the numbers of a model: ridge, sigma, and those of its teacher, student, loss."""
    names = ["ridge", "sigma"]
    for part in PARTS:
        values = getattr(model, part)
        if isinstance(values, eqx.Module):
            names += [name for name, value in vars(values).items() if _is_number(value)]
    return names


def parameter_value(model: Model, name: str) -> float:
    """The value of a number; sigma is that of the first token."""
    return float(np.ravel(_selector(model, name)(model))[0])


def parameter_range(model: Model, name: str) -> tuple[float, float]:
    """Smallest and largest value of a number."""
    if name in ("ridge", "sigma"):
        return 0.0, math.inf
    for part in PARTS:
        ranges = getattr(getattr(model, part), "ranges", {})
        if name in ranges:
            low, high = ranges[name]
            return low, high
    return -math.inf, math.inf


def with_parameter(model: Model, name: str, value: float) -> Model:
    """The model with another value; unequal sigmas keep their ratios."""
    select = _selector(model, name)
    scaled = np.full_like(np.asarray(select(model), dtype=float), value)
    if name == "sigma":
        scaled = scaled * np.asarray(model.sigma) / float(model.sigma[0])
    changed: Model = eqx.tree_at(select, model, scaled)
    return changed


def _selector(model: Model, name: str) -> Callable[[Any], Any]:
    if name in ("ridge", "sigma"):
        return attrgetter(name)
    for part in PARTS:
        values = getattr(model, part)
        if isinstance(values, eqx.Module) and _is_number(getattr(values, name, None)):
            return attrgetter(f"{part}.{name}")
    raise InvalidInput("parameter", name, "must be one of " + ", ".join(parameter_names(model)))


def _is_number(value: Any) -> bool:
    return eqx.is_array_like(value) and np.ndim(value) == 0 and not isinstance(value, bool)
