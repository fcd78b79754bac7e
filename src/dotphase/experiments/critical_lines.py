"""The critical lines of a family of models, replica symmetric and with one step of breaking."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import xarray as xr

from dotphase.model import Model
from dotphase.storage.provenance import provenance
from dotphase.theory.breaking.critical import BrokenCritical, broken_critical
from dotphase.theory.critical import Critical, critical

#: Lines and what they are.
LINES = {
    "alpha_c": "training losses of the semantic and the positional minimum cross",
    "alpha_l": "test error of the lowest minimum passes that of the linear layer",
}
#: What there is of each line, by the ending of its name.
ENDINGS = {
    "": "replica symmetric",
    "_stderr": "its standard error, of the points",
    "_shift": "what one step of replica symmetry breaking changes",
    "_shift_stderr": "standard error of that change",
    "_broken": "with one step of replica symmetry breaking",
    "_broken_stderr": "its standard error, of the points and of the change",
}


def critical_lines(
    family: Callable[[float], Model],
    values: Iterable[float],
    parameter: str = "omega",
    *,
    largest: float = 8.0,
    log2_points: int = 17,
    inner: int | None = None,
    progress: Callable[[float, Critical, BrokenCritical | None], None] | None = None,
    **changes: Any,
) -> xr.Dataset:
    """alpha_c and alpha_l along a family, replica symmetric and broken, with errors.

    Parameters
    ----------
    family, values, largest
        As for `dotphase.critical_line`.
    parameter : str
        What the values are called.
    log2_points : int
        log2 of the points of the replica-symmetric lines.
    inner, **changes
        Of the breaking, as for `dotphase.solve`.
    progress : callable, optional
        Called with each value and what was found there.

    Returns
    -------
    xarray.Dataset
        Over the parameter: for each line the endings of `ENDINGS`, NaN where it was not found;
        ``trusted``, whether the replica-symmetric theory trusts itself at alpha_c; and ``message``.
    """
    rows, models = [], []
    for value in values:
        models.append(family(float(value)))
        found = critical(models[-1], largest=largest, limits=False, log2_points=log2_points)
        broken = None
        if found.crosses:
            broken = broken_critical(models[-1], found, inner=inner, **changes)
        rows.append((float(value), found, broken))
        if progress is not None:
            progress(*rows[-1])
    asked = {"parameter": parameter, "log2_points": log2_points}
    dataset = xr.Dataset(
        coords={parameter: [row[0] for row in rows]}, attrs=provenance(models[0], **asked)
    )
    for line, text in LINES.items():
        table = np.asarray([_numbers(line, *row[1:]) for row in rows])
        for column, (ending, how) in zip(table.T, ENDINGS.items(), strict=True):
            dataset[line + ending] = (parameter, column, {"description": f"{text}: {how}"})
    dataset["trusted"] = (parameter, [row[1].trusted for row in rows])
    dataset["message"] = (parameter, [_message(*row[1:]) for row in rows])
    return dataset


def _numbers(line: str, found: Critical, broken: BrokenCritical | None) -> list[float]:
    """In the order of `ENDINGS`."""
    plain = [getattr(found, line), getattr(found, f"{line}_stderr")]
    if broken is None:
        return [*plain, *[np.nan] * 4]
    shift = [getattr(broken, f"{line}_shift"), getattr(broken, f"{line}_shift_stderr")]
    return [*plain, *shift, plain[0] + shift[0], float(np.hypot(plain[1], shift[1]))]


def _message(found: Critical, broken: BrokenCritical | None) -> str:
    """Why something is missing; the doubts of the replica-symmetric theory otherwise."""
    if broken is None:
        return found.message
    parts = {"semantic": broken.semantic, "positional": broken.positional}
    parts["semantic at alpha_l"] = broken.linear
    lost = [f"{name}: {part.message}" for name, part in parts.items() if not part.there]
    return "; ".join(lost) or found.message
