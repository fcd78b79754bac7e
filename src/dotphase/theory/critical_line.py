"""Critical points along a one-parameter family of models."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Unpack

import numpy as np
from jaxtyping import Float

from dotphase.config import validation
from dotphase.config.formatting import Description, format_value
from dotphase.model import Model
from dotphase.runtime.precision import in_double_precision
from dotphase.runtime.progress import Progress
from dotphase.storage.labels import add_labels
from dotphase.storage.provenance import provenance
from dotphase.storage.results import Result
from dotphase.theory.critical import ALPHA_MAX, ALPHA_MIN, SETTINGS, Critical, search_job
from dotphase.theory.driver import run_all
from dotphase.theory.settings import SolverFields, SolverSettings, with_changes

if TYPE_CHECKING:
    import xarray as xr

#: Variables of the dataset over the parameter, with their descriptions.
VARIABLES = {
    "alpha_c": "transition to a minimum aligned with the teacher",
    "alpha_c_stderr": "standard error",
    "alpha_c_model_error": "estimated shift by replica symmetry breaking",
    "alpha_l": "test error of the lowest minimum passes that of the linear layer",
    "alpha_l_stderr": "standard error",
    "linear_test_error": "test error of the linear layer",
}
#: Variables over branch and parameter: attributes of `dotphase.theory.spinodal.Limits`.
LIMITS = {
    "stability_loss": "the branch stops being a minimum",
    "stability_loss_stderr": "standard error",
    "end": "the branch ends",
    "end_stderr": "standard error",
}


@dataclass(frozen=True, eq=False)
class CriticalLine(Result):
    """Critical points for several values of a parameter; a sequence of `Critical`.

    Attributes
    ----------
    parameter : name of the parameter
    values : values of the parameter
    points : critical points at these values

    Examples
    --------
    >>> line = dp.critical_line(
    ...     dp.positional_semantic, [0.3, 0.4], alpha_min=0.8, alpha_max=2.0, log2_points=12
    ... )
    >>> [point.found for point in line]
    [True, True]
    >>> line.dataset()["alpha_c"].dims
    ('omega',)
    """

    parameter: str
    values: Float[np.ndarray, " values"]
    points: tuple[Critical, ...]

    def __iter__(self) -> Iterator[Critical]:
        return iter(self.points)

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, index: int) -> Critical:
        return self.points[index]

    def dataset(self) -> xr.Dataset:
        """Return the lines over the parameter, for `dotphase.plot.diagram`.

        ``alpha_c``, ``alpha_l`` and ``linear_test_error`` are over the parameter, and
        ``alpha_c_trusted`` is true where the theory is. ``stability_loss`` and ``branch_end`` have
        the dimension ``branch`` as well, if `critical_line` located the limits of the branches.
        """
        import xarray as xr

        dataset = xr.Dataset(
            coords={self.parameter: self.values},
            attrs=provenance(parameter=self.parameter),
        )
        for name, text in VARIABLES.items():
            row = [getattr(point, name, math.nan) for point in self.points]
            dataset[name] = (self.parameter, row, {"description": text})
        trusted = [point.trusted for point in self.points]
        text = "the theory is trusted for both minima at alpha_c"
        dataset["alpha_c_trusted"] = (self.parameter, trusted, {"description": text})
        branches = list(dict.fromkeys(name for point in self.points for name in point.limits))
        if branches:
            dataset = dataset.assign_coords(branch=branches)
            for name, text in LIMITS.items():
                rows = [
                    [getattr(point.limits.get(branch), name, math.nan) for point in self.points]
                    for branch in branches
                ]
                label = f"branch_{name}" if name.startswith("end") else name
                dataset[label] = (("branch", self.parameter), rows, {"description": text})
        return add_labels(dataset)

    @property
    def description(self) -> Description:
        """alpha_c and alpha_l for each value of the parameter."""
        rows = [
            (
                f"{self.parameter} = {value:g}",
                f"alpha_c {format_value(point.alpha_c, point.alpha_c_stderr)}"
                f"{'' if point.trusted else ' ?'}, "
                f"alpha_l {format_value(point.alpha_l, point.alpha_l_stderr)}",
            )
            for value, point in zip(self.values.tolist(), self.points, strict=True)
        ]
        doubtful = not all(point.trusted for point in self.points)
        notes = ("?: the theory is not trusted there",) if doubtful else ()
        return Description(f"critical points by {self.parameter}", tuple(rows), notes)


@in_double_precision
def critical_line(
    family: Callable[[float], Model],
    values: Sequence[float],
    parameter: str = "omega",
    *,
    alpha_min: float = ALPHA_MIN,
    alpha_max: float = ALPHA_MAX,
    limits: bool = False,
    progress: Progress = None,
    settings: SolverSettings | None = None,
    **changes: Unpack[SolverFields],
) -> CriticalLine:
    """Find the critical points of a one-parameter family of models.

    Parameters
    ----------
    family : callable
        The model for a value of the parameter.
    values : sequence of float
        Values of the parameter, no two the same.
    parameter : str
        Name of the parameter in the result.
    progress : bool or callable, optional
        Receives an event with each `Critical` (`dotphase.results.ProgressEvent`).
    alpha_min, alpha_max, limits, settings, **changes
        As for `dotphase.critical`; the limits of branches are not located by default.

    Returns
    -------
    CriticalLine
        A sequence of `dotphase.results.Critical`, which `dotphase.plot.diagram` draws.

    Examples
    --------
    >>> line = dp.critical_line(
    ...     dp.positional_semantic, [0.3, 0.4], alpha_min=0.8, alpha_max=2.0, log2_points=12
    ... )
    >>> figure = dp.plot.diagram(line, "line.png")
    """
    settings = with_changes(settings, SETTINGS, changes)
    checked = validation.grid(parameter, values, increasing=False)
    models = [family(value) for value in checked.tolist()]
    jobs = [search_job(model, alpha_min, alpha_max, limits, settings) for model in models]
    return CriticalLine(parameter, checked, tuple(run_all(jobs, "critical line", progress)))
