"""Phase diagrams: both branches on a grid of alpha and one parameter of the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Unpack

import numpy as np
import xarray as xr
from jaxtyping import Float

from dotphase._numerics import validate
from dotphase._numerics.crossing import first_rise, last_fall
from dotphase.errors import InvalidInput
from dotphase.experiments.solutions import is_minimum, variables
from dotphase.model import Model
from dotphase.storage.labels import labelled
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
    progress: Callable[[Solution], None] | None = None,
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
        Called with each solution as it is finished.
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
        sign, interpolated.

    Examples
    --------
    >>> cells = dp.diagram(dp.positional_semantic, [1.0, 2.0], [0.2, 0.4], log2_points=12)
    >>> cells["loss_difference"].dims
    ('omega', 'alpha')
    """
    grid = validate.grid("alphas", alphas)
    steps = validate.grid(parameter, values)
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
    """The dataset of `diagram` from its solutions.

    Parameters
    ----------
    models : sequence of Model
        One per value of the parameter.
    chains : sequence of sequences of Solution
        Along alpha: of all models on each branch that counts as semantic, then on the
        positional one.

    Other parameters are those of `diagram`.
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
    there = [solution for solution in choice if solution.there]
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
    lines = []
    for value in dataset[parameter].values:
        row = dataset.sel({parameter: value})
        alpha, steepness = row["alpha"].values, slope.sel({parameter: value}).values
        fall = last_fall(alpha, row["loss_difference"].values, steepness)
        # Without a crossing (one branch is nowhere) the gain is looked at on the whole grid.
        passing = first_rise(alpha, row["test_gain"].values, fall.at if fall else None)
        lines.append((fall.at if fall else np.nan, passing))
    alpha_c, alpha_l = np.transpose(lines)
    dataset["alpha_c"] = (parameter, alpha_c, {"description": "training losses cross"})
    dataset["alpha_l"] = (parameter, alpha_l, {"description": "test error passes the linear layer"})
    return labelled(dataset)
