"""Identity of points: those of two studies are equal if task, model, parameters and seed are."""

import json
from typing import Any

import numpy as np
from jaxtyping import Int

from dotphase.errors import InvalidInput
from dotphase.study.spec import Study

#: Index of a value that an axis does not have: it makes the index of every such point negative.
MISSING = -(2**40)


def new_indices(old: Study, new: Study) -> Int[np.ndarray, " points"] | None:
    """Return the index in a study of each point of another; negative for points it does not have.

    None if task or model differ. The order of the axes does not matter, nor whether a parameter is
    fixed or swept.
    """
    if _origin(old) != _origin(new):
        return None
    names = [*new.axes, *(old.axes.keys() - new.axes.keys())]
    sizes = [len(new.axes.get(name, (None,))) for name in names]
    strides = dict(zip(names, np.cumprod([1, *sizes[:0:-1]])[::-1], strict=True))
    index = np.zeros((), np.int64)
    for name in [*(new.axes.keys() - old.axes.keys()), *old.axes]:
        position = _positions(old.axes.get(name, (None,)), new.axes.get(name, (None,)))
        term = np.where(position < 0, MISSING, position * strides[name])
        index = index[..., np.newaxis] + term
    return index.ravel()


def union(first: Study, second: Study) -> Study:
    """Return the smallest study with all points of two studies.

    Sorted axes stay sorted; otherwise the values of the second follow those of the first.
    """
    if _origin(first) != _origin(second):
        names = [f"{study.task} of {study.model or 'its own model'}" for study in (first, second)]
        raise InvalidInput("study", names[1], f"must have the task and the model of {names[0]}")
    axes = {
        name: _joined(first.axes.get(name, (None,)), second.axes.get(name, (None,)))
        for name in {**first.axes, **second.axes}
    }
    seeds = axes.pop("seed")
    swept = {**first.sweep, **second.sweep}
    swept |= {name: values for name, values in axes.items() if len(values) > 1}
    fixed = {name: values[0] for name, values in axes.items() if name not in swept}
    sweep = {name: list(axes[name]) for name in swept}
    grids = {"fixed": fixed, "sweep": sweep, "seeds": list(seeds)}
    return Study.restore(first.to_dict() | grids)


def _origin(study: Study) -> tuple[Any, ...]:
    model = study.model
    return study.task, model and (model.name, model.digest)


def _positions(values: tuple[Any, ...], axis: tuple[Any, ...]) -> Int[np.ndarray, " values"]:
    """Return the position of each value on an axis, -1 if missing.

    Grids of another length compute the same number with another rounding error.
    """
    index_of = {_rounded(value): k for k, value in enumerate(axis)}
    return np.array([index_of.get(_rounded(value), -1) for value in values], np.int64)


def _rounded(value: Any) -> str:
    return f"{value:.13g}" if isinstance(value, float) else json.dumps(value)


def _joined(first: tuple[Any, ...], second: tuple[Any, ...]) -> tuple[Any, ...]:
    new = [value for value, k in zip(second, _positions(second, first), strict=True) if k < 0]
    joined = (*first, *new)
    are_numbers = all(isinstance(value, int | float) for value in joined)
    if are_numbers and all(list(values) == sorted(values) for values in (first, second)):
        return tuple(sorted(joined))
    return joined
