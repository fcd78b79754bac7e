"""Phase diagrams: both branches on a grid of alpha and one parameter of the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Unpack

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float

from dotphase.config import validation
from dotphase.errors import InvalidInput
from dotphase.experiments.theory.solution_variables import is_minimum, variables
from dotphase.model import Model
from dotphase.numerics.crossings import first_rise, last_fall
from dotphase.runtime.progress import ProgressCallback
from dotphase.storage.labels import add_labels
from dotphase.storage.provenance import provenance
from dotphase.theory.settings import SolverFields, SolverSettings, with_changes
from dotphase.theory.solution import Solution
from dotphase.theory.solve import continue_many

#: Precision of every cell: about .2% in losses, 1% in overlaps.
SETTINGS = SolverSettings(log2_points=14)

#: The two mechanisms that compete in every cell.
SIDES = ("semantic", "positional")


def diagram(
    family: Callable[[float], Model],
    alphas: Sequence[float],
    values: Sequence[float],
    parameter: str = "omega",
    *,
    informed: Sequence[str] = ("semantic",),
    progress: ProgressCallback | None = None,
    settings: SolverSettings | None = None,
    **changes: Unpack[SolverFields],
) -> xr.Dataset:
    """Solve the semantic and the positional branch on a grid.

    Parameters
    ----------
    family : callable
        The model for a value of the parameter.
    alphas, values : sequences of float
        Sample complexities, and values of the parameter; increasing.
    parameter : str
        Name of the second dimension.
    informed : sequence of str
        Branches that count as semantic. Where there are several, as ``("mixed", "semantic")``
        of a student of rank two, each cell has the one with the lowest training loss.
    progress : callable, optional
        Receives an event with each solution (`dotphase.results.ProgressEvent`).
    settings, **changes
        As for `dotphase.solve`; 2^14 points in every cell by default, the same in all.

    Returns
    -------
    xarray.Dataset
        Dimensions ``branch``, `parameter` and ``alpha``. ``kind`` says of each branch whether it
        is a minimum, a saddle or missing. Minima are compared with minima:
        ``loss_difference`` is the semantic minus the positional training loss, ``winner`` the
        branch that is the lower minimum, ``test_gain`` the linear layer's test error minus the
        winner's; ``alpha_c`` and ``alpha_l`` are the lines where the first and the last change
        sign, interpolated, each with its ``_stderr`` and whether the theory is ``_trusted`` next to
        it (`dotphase.critical` finds them without a grid).

    Examples
    --------
    >>> cells = dp.diagram(dp.positional_semantic, [1.0, 2.0], [0.2, 0.4], log2_points=12)
    >>> cells["loss_difference"].dims
    ('omega', 'alpha')
    """
    grid = validation.grid("alphas", alphas)
    steps = validation.grid(parameter, values)
    if grid.size < 2:
        raise InvalidInput("alphas", alphas, "must be two or more numbers")
    settings = with_changes(settings, SETTINGS, changes)
    models = [family(float(value)) for value in steps]
    asked = [(model, branch) for branch in (*informed, "positional") for model in models]
    chains = continue_many(asked, grid.tolist(), progress=progress, settings=settings)
    return assemble_diagram(models, chains, grid, steps, parameter, settings)


def assemble_diagram(
    models: Sequence[Model],
    chains: Sequence[Sequence[Solution]],
    grid: Float[np.ndarray, " alpha"],
    steps: Float[np.ndarray, " parameter"],
    parameter: str = "omega",
    settings: SolverSettings = SETTINGS,
) -> xr.Dataset:
    """The dataset of `diagram` from its solutions along alpha.

    The chains are of all models, one for each value of the parameter, on each branch that counts as
    semantic, then on the positional one.
    """
    solved = [solution for chain in chains for solution in chain]
    count = steps.size * grid.size
    rows = [solved[k * count : (k + 1) * count] for k in range(len(chains) // len(models))]
    cells = [_lowest(choice) for choice in zip(*rows[:-1], strict=True)] + rows[-1]
    dims, shape = ("branch", parameter, "alpha"), (len(SIDES), steps.size, grid.size)
    dataset = xr.Dataset(
        variables(cells, dims, shape),
        coords={"branch": list(SIDES), parameter: steps, "alpha": grid},
        attrs=provenance(models[0], parameter=parameter, **settings.to_dict()),
    )
    linear = [chains[index][0].linear_test_error for index in range(steps.size)]
    dataset["linear_test_error"] = (parameter, linear)
    return _with_lines(dataset, parameter)


def _lowest(choice: Sequence[Solution]) -> Solution:
    """The lowest minimum; where there is none, the lowest saddle; else the first."""
    there = [solution for solution in choice if solution.on_branch]
    minima = [solution for solution in there if solution.is_minimum]
    return min(minima or there, key=lambda solution: solution.train_loss, default=choice[0])


def _with_lines(dataset: xr.Dataset, parameter: str) -> xr.Dataset:
    """Add what is read off the two branches: difference, winner, gain, and the lines."""
    semantic, positional = (dataset.sel(branch=name, drop=True) for name in SIDES)
    low, high = is_minimum(semantic), is_minimum(positional)
    difference = (semantic["train_loss"] - positional["train_loss"]).where(low & high)
    semantic_wins = low & ((difference < 0) | ~high)
    best = xr.where(semantic_wins, semantic["test_error"], positional["test_error"])
    best = best.where(semantic_wins | high)
    trusted = xr.where(semantic_wins, semantic["trusted"], positional["trusted"])
    dataset["loss_difference"] = difference
    otherwise = xr.where(high, "positional", "none")
    dataset["winner"] = xr.where(semantic_wins, "semantic", otherwise)
    dataset["test_gain"] = dataset["linear_test_error"] - best
    dataset["winner_trusted"] = trusted
    slope = semantic["loss_slope"] - positional["loss_slope"]
    noise = xr.apply_ufunc(
        np.hypot, *(side["train_loss_stderr"] for side in (semantic, positional))
    )
    wins = dataset["winner"] == "semantic"
    errors = xr.where(wins, semantic["test_error_stderr"], positional["test_error_stderr"])
    both = semantic["trusted"] & positional["trusted"]
    lines = [
        _line(dataset.sel({parameter: value}), *(part.sel({parameter: value}).values
              for part in (slope, noise, errors, both)))
        for value in dataset[parameter].values
    ]  # fmt: skip
    told = {
        "alpha_c": "training losses cross",
        "alpha_c_stderr": "of the points and of the interpolation",
        "alpha_c_trusted": "whether both minima are trusted next to it",
        "alpha_l": "test error passes the linear layer",
        "alpha_l_stderr": "of the points and of the interpolation",
        "alpha_l_trusted": "whether the lowest minimum is trusted next to it",
    }
    for (name, text), values in zip(told.items(), zip(*lines, strict=True), strict=True):
        dataset[name] = (parameter, list(values), {"description": text})
    return add_labels(dataset)


def _line(
    row: xr.Dataset,
    slope: Float[np.ndarray, " alpha"],
    noise: Float[np.ndarray, " alpha"],
    errors: Float[np.ndarray, " alpha"],
    both: Bool[np.ndarray, " alpha"],
) -> tuple[float, float, bool, float, float, bool]:
    """alpha_c and alpha_l at one value of the parameter, each with its error and whether it is
    trusted.

    Between two points of the grid a curve is interpolated; how far that is off is not known better
    than by how much it differs from a straight line.
    """
    alpha = row["alpha"].values
    fall = last_fall(alpha, row["loss_difference"].values, slope)
    crossing = (np.nan, np.nan, False)
    if fall:
        error = float(np.hypot(fall.stderr(noise), fall.interpolation_error))
        crossing = (fall.position, error, bool(both[fall.left : fall.left + 2].all()))
    # Without a crossing (one branch is nowhere) the gain is looked at on the whole grid.
    gain = row["test_gain"].values
    passing = first_rise(alpha, gain, fall.position if fall else None)
    if not np.isfinite(passing):
        return *crossing, np.nan, np.nan, False
    left = int(np.clip(np.searchsorted(alpha, passing) - 1, 0, alpha.size - 2))
    pair = slice(left, left + 2)
    steepness = np.diff(gain[pair])[0] / np.diff(alpha[pair])[0]
    straight = alpha[left] - gain[left] / steepness
    # Next to a jump of the lowest minimum a straight line says nothing.
    bend = abs(passing - straight) if alpha[left] <= straight <= alpha[left + 1] else 0.0
    if fall and passing == fall.position:
        return *crossing, passing, crossing[1], crossing[2]
    error = float(np.hypot(np.nanmax(errors[pair]) / abs(steepness), bend))
    return *crossing, passing, error, bool(row["winner_trusted"].values[pair].all())
