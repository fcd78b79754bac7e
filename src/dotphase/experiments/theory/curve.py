"""Branches along alpha, as a labeled dataset."""

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import numpy as np
import xarray as xr

from dotphase.config import validation
from dotphase.dmft.settings import DynamicsSettings
from dotphase.errors import InvalidInput
from dotphase.experiments.dynamics.descent_limits import descent_limits
from dotphase.experiments.theory.solution_variables import is_minimum, variables
from dotphase.finite_d.initialization import PrescribedStart
from dotphase.model import Model
from dotphase.model.definition import check_model
from dotphase.model.linear_layer import linear_test_error
from dotphase.numerics.crossings import locate_fall
from dotphase.runtime.progress import Progress
from dotphase.storage.labels import add_labels
from dotphase.storage.provenance import provenance
from dotphase.theory.branches import BRANCHES
from dotphase.theory.settings import SolverFields, SolverSettings, with_changes
from dotphase.theory.solve import continue_in_alpha

#: Coarse settings: the error of a curve is below the width of a line.
SETTINGS = SolverSettings(rtol=1e-2, max_log2_points=14)
#: Minima of the training loss, or the limits of gradient descent.
THEORIES = ("state_evolution", "dynamics")


class CurveFields(SolverFields, total=False):
    """Fields of `SolverSettings`, or of `DynamicsSettings` with the start and the steps."""

    start: str | PrescribedStart | Mapping[str, str | PrescribedStart]
    lr: float
    steps: int
    momentum: float
    batch_fraction: float
    scale: float
    log2_ensemble: int
    repetitions: int
    dtype: str


def curve(
    model: Model,
    alphas: Sequence[float],
    branches: Sequence[str] = ("semantic", "positional"),
    *,
    theory: str = "state_evolution",
    d: int | None = None,
    progress: Progress = None,
    settings: SolverSettings | DynamicsSettings | None = None,
    **changes: Unpack[CurveFields],
) -> xr.Dataset:
    """Follow branches along alpha, or the limits of gradient descent.

    Parameters
    ----------
    model : Model
        Teacher, student and data.
    alphas : sequence of float
        Sample complexities, in any order, no two the same.
    branches : sequence of str
        Branches to follow; for the dynamics, the starts of these names.
    theory : {"state_evolution", "dynamics"}
        Minima of the training loss in replica-symmetric theory, or the limits of gradient descent.
        The latter exist everywhere, and need not be minima of that theory.
    d : int, optional
        Adds ``train_loss_at_d`` and ``test_error_at_d``, the losses in this dimension with the
        known terms of order 1/d (not for the dynamics).
    progress : bool or callable, optional
        Receives an event with each solution (`dotphase.results.ProgressEvent`).
    settings, **changes
        As for `dotphase.solve`, with a coarser default. For the dynamics as for
        `dotphase.dynamics`, and besides: start, a name or `dotphase.start_from` instead of
        branches, or a mapping from names to starts; lr, the step size (by default the largest of
        4, 2, 1, ... that lowers the loss); steps, their number (by default as many as the descent
        takes to settle, with an extrapolation).

    Returns
    -------
    xarray.Dataset
        Dimensions ``branch`` and ``alpha``; every result with its ``_stderr``. ``on_branch`` is
        false if there is no such branch (``converged`` is true, and the values are those of
        another fixed point) or if the solver failed (``converged`` is false, and the values have
        no meaning). ``kind`` is minimum, saddle, marginal, unknown or missing. ``alpha_c`` is the
        alpha at which the training losses of the semantic and the positional minimum cross, NaN
        if they do not cross on this grid.
        Limits of descents have no V. Their errors include the extrapolation, and ``converged`` is
        false if that is large.

    Examples
    --------
    >>> branches = dp.curve(dp.positional_semantic(), [1.0, 2.0], log2_points=12)
    >>> branches["train_loss"].dims
    ('branch', 'alpha')
    >>> small = {"log2_ensemble": 8, "repetitions": 2, "steps": 5, "lr": 8.0}
    >>> ends = dp.curve(dp.positional_semantic(), [0.5], theory="dynamics", **small)
    >>> bool(ends["theta"].sel(branch="semantic", alpha=0.5) > 0.1)
    True
    """
    check_model(model)
    if theory not in THEORIES:
        raise InvalidInput("theory", theory, "must be one of " + ", ".join(THEORIES))
    if theory == "dynamics":
        if d is not None:
            raise InvalidInput("d", d, "must not be given for the dynamics, which has no such term")
        start = changes.pop("start", None)
        starts: Any = branches if start is None else start
        if isinstance(starts, str | PrescribedStart):
            starts = [starts]
        options: Any = {"settings": settings, **changes}
        dataset = descent_limits(model, alphas, starts, progress=progress, **options)
    else:
        dataset = _follow_branches(model, alphas, branches, d, progress, settings, changes)
    dataset["alpha"].attrs["description"] = "sample complexity n/d"
    dataset["linear_test_error"] = linear_test_error(model, seed=dataset.attrs["seed"])
    dataset["linear_test_error"].attrs["description"] = "test error of the linear layer"
    dataset["alpha_c"], dataset["alpha_c_stderr"] = interpolate_alpha_c(dataset)
    dataset["alpha_c"].attrs["description"] = "alpha at which the training losses cross"
    return add_labels(dataset)


def _follow_branches(
    model: Model,
    alphas: Sequence[float],
    branches: Sequence[str],
    d: int | None,
    progress: Progress,
    settings: Any,
    changes: CurveFields,
) -> xr.Dataset:
    """Solve state evolution along the branches."""
    grid = validation.grid("alphas", alphas, increasing=False)
    names = validation.distinct_choices("branches", branches, BRANCHES)
    settings = with_changes(settings, SETTINGS, changes)
    attributes = provenance(model, alphas=grid, branches=names, **settings.to_dict())
    rows = continue_in_alpha(model, grid.tolist(), names, progress=progress, settings=settings)
    solutions = [solution for name in names for solution in rows[name]]
    dims, shape = ("branch", "alpha"), (len(names), grid.size)
    dataset = xr.Dataset(
        variables(solutions, dims, shape), coords={"branch": names, "alpha": grid}, attrs=attributes
    )
    if d is not None:
        dataset.attrs["d"] = d
        finite = [solution.at(d) if solution.on_branch else None for solution in solutions]
        for name in ("train_loss", "test_error"):
            values = [np.nan if point is None else point.value(name) for point in finite]
            dataset[f"{name}_at_d"] = (dims, np.reshape(values, shape))
    return dataset


def interpolate_alpha_c(dataset: xr.Dataset) -> tuple[float, float]:
    """alpha_c of a curve and its standard error.

    The semantic training loss falls below the positional one there, interpolated between two
    points of the grid, with the slopes of the losses if the dataset has them. NaN if one of the
    branches is missing, or if they do not cross.
    """
    if not {"semantic", "positional"} <= set(dataset["branch"].values.tolist()):
        return np.nan, np.nan
    ordered = dataset.sortby("alpha")
    pair = [ordered.sel(branch=name) for name in ("semantic", "positional")]
    both = (is_minimum(pair[0]) & is_minimum(pair[1])).values
    alpha = ordered["alpha"].values[both]
    gap = (pair[0]["train_loss"] - pair[1]["train_loss"]).values[both]
    slope = None
    if "loss_slope" in dataset:
        slope = (pair[0]["loss_slope"] - pair[1]["loss_slope"]).values[both]
    error = np.hypot(*(part["train_loss_stderr"].values[both] for part in pair))
    return locate_fall(alpha, gap, error, slope)
