"""Branches against alpha, as a labelled dataset."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Unpack

import numpy as np
import xarray as xr

from dotphase.config import validation
from dotphase.dmft.settings import DynamicsSettings
from dotphase.errors import InvalidInput
from dotphase.experiments.dynamics.descent_limits import ends
from dotphase.experiments.theory.solution_variables import is_minimum, variables
from dotphase.finite_d.initialization import Prescribed
from dotphase.model import Model
from dotphase.model.definition import check_model
from dotphase.model.linear_layer import linear_test_error
from dotphase.numerics.crossings import locate_fall
from dotphase.storage.labels import add_labels
from dotphase.storage.provenance import provenance
from dotphase.theory.branches import BRANCHES
from dotphase.theory.settings import SolverFields, SolverSettings, with_changes
from dotphase.theory.solve import continue_in_alpha

#: Precision of a curve: finer than a line in a plot, coarse enough to be quick.
SETTINGS = SolverSettings(rtol=1e-2, max_log2_points=14)
#: What a line can be: minima of the training loss, or ends of gradient descent.
THEORIES = ("state_evolution", "dynamics")


class CurveFields(SolverFields, total=False):
    """The fields of `SolverSettings`, or of `DynamicsSettings` and what a descent is."""

    start: str | Prescribed | Mapping[str, str | Prescribed]
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
    progress: Callable[[Any], None] | None = None,
    settings: SolverSettings | DynamicsSettings | None = None,
    **changes: Unpack[CurveFields],
) -> xr.Dataset:
    """Follow branches, or what gradient descent ends at, along alpha.

    Parameters
    ----------
    model : Model
        Teacher, student and data.
    alphas : sequence of float
        Sample complexities, in any order, no two the same.
    branches : sequence of str
        Branches to follow; for the dynamics, the starts of these names.
    theory : {"state_evolution", "dynamics"}
        The minima of the training loss as replica-symmetric theory has them, or the ends of
        gradient descent, which are there everywhere and may be no minima of that theory.
    d : int, optional
        Dimension at which the losses are wanted as well: ``train_loss_at_d`` and
        ``test_error_at_d``, with the known terms of order 1/d (not for the dynamics).
    progress : callable, optional
        Called with each solution, or end, as it is finished.
    settings, **changes
        As for `dotphase.solve`; coarser by default, since a curve is looked at. For the dynamics
        as for `dotphase.dynamics`, and besides: start, a name or `dotphase.start_from` in place
        of the branches, or several by names of yours; lr, the size of a step (the largest of
        4, 2, 1, ... for which the loss falls); steps, after which to look (to the end,
        extrapolated); momentum; batch_fraction; scale.

    Returns
    -------
    xarray.Dataset
        Dimensions ``branch`` and ``alpha``; every result with its ``_stderr``. Where
        ``on_branch`` is false there is no such branch (then ``converged`` is true, and the
        values are those of the fixed point found instead) or the solver found nothing (then it
        is false, and the values mean nothing). ``kind`` says whether it is a minimum or a saddle.
        ``alpha_c`` is the alpha at which the training losses of the semantic and the positional
        minimum cross, NaN if they do not on this grid.
        Ends of descents have no V; the error holds what is still to come, and ``converged`` is
        false where that is much.

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
            raise InvalidInput("d", d, "must not be given for the dynamics, which has its own")
        start = changes.pop("start", None)
        starts: Any = branches if start is None else start
        if isinstance(starts, str | Prescribed):
            starts = [starts]
        dataset = ends(model, alphas, starts, progress=progress, settings=settings, **changes)  # type: ignore[arg-type, misc]
    else:
        dataset = _followed(model, alphas, branches, d, progress, settings, changes)
    dataset["alpha"].attrs["description"] = "sample complexity n/d"
    dataset["linear_test_error"] = linear_test_error(model, seed=dataset.attrs["seed"])
    dataset["linear_test_error"].attrs["description"] = "test error of the linear layer"
    dataset["alpha_c"], dataset["alpha_c_stderr"] = interpolate_alpha_c(dataset)
    dataset["alpha_c"].attrs["description"] = "alpha where the training losses cross"
    return add_labels(dataset)


def _followed(
    model: Model,
    alphas: Sequence[float],
    branches: Sequence[str],
    d: int | None,
    progress: Callable[[Any], None] | None,
    settings: Any,
    changes: CurveFields,
) -> xr.Dataset:
    """Branches of state evolution."""
    grid = validation.grid("alphas", alphas, increasing=False)
    names = validation.distinct_choices("branches", branches, BRANCHES)
    settings = with_changes(settings, SETTINGS, changes)
    attributes = provenance(model, alphas=grid, branches=names, **settings.to_dict())
    found = continue_in_alpha(model, grid.tolist(), names, progress=progress, settings=settings)
    solutions = [solution for name in names for solution in found[name]]
    dims, shape = ("branch", "alpha"), (len(names), grid.size)
    dataset = xr.Dataset(
        variables(solutions, dims, shape), coords={"branch": names, "alpha": grid}, attrs=attributes
    )
    if d is not None:
        dataset.attrs["d"] = d
        finite = [solution.at(d) if solution.on_branch else None for solution in solutions]
        for name in ("train_loss", "test_error"):
            values = [np.nan if one is None else one.value(name) for one in finite]
            dataset[f"{name}_at_d"] = (dims, np.reshape(values, shape))
    return dataset


def interpolate_alpha_c(dataset: xr.Dataset) -> tuple[float, float]:
    """Where the semantic training loss falls below the positional one, and its error.

    Interpolated between the two grid points that enclose the crossing, with the slopes of the
    losses where they are known; NaN where the curve does not hold both branches or they do not
    cross.
    """
    if not {"semantic", "positional"} <= set(dataset["branch"].values.tolist()):
        return np.nan, np.nan
    ordered = dataset.sortby("alpha")
    pair = [ordered.sel(branch=name) for name in ("semantic", "positional")]
    valid = (is_minimum(pair[0]) & is_minimum(pair[1])).values
    alpha = ordered["alpha"].values[valid]
    gap = (pair[0]["train_loss"] - pair[1]["train_loss"]).values[valid]
    slope = None
    if "loss_slope" in dataset:
        slope = (pair[0]["loss_slope"] - pair[1]["loss_slope"]).values[valid]
    error = np.hypot(*(part["train_loss_stderr"].values[valid] for part in pair))
    return locate_fall(alpha, gap, error, slope)
