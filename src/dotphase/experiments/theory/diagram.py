"""Phase diagrams: both branches on a grid of alpha and one parameter of the model."""

from collections.abc import Callable, Sequence
from typing import Unpack

import numpy as np
import xarray as xr
from jaxtyping import Float

from dotphase.config import validation
from dotphase.errors import InvalidInput
from dotphase.experiments.theory.solution_variables import is_minimum, variables
from dotphase.model import Model
from dotphase.numerics.crossings import first_rise, last_fall
from dotphase.runtime.progress import Progress
from dotphase.storage.labels import add_labels
from dotphase.storage.provenance import provenance
from dotphase.theory.settings import SolverFields, SolverSettings, with_changes
from dotphase.theory.solution import Solution
from dotphase.theory.solve import continue_many

#: About .2% precision in losses, 1% in overlaps.
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
    progress: Progress = None,
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
        Branches that count as semantic. With several, as ``("mixed", "semantic")`` of a student of
        rank two, each cell contains the one with the lowest training loss.
    progress : bool or callable, optional
        Receives an event with each solution (`dotphase.results.ProgressEvent`).
    settings, **changes
        As for `dotphase.solve`; 2^14 points in every cell by default, the same in all.

    Returns
    -------
    xarray.Dataset
        Dimensions ``branch``, `parameter` and ``alpha``. ``kind`` is minimum, saddle, marginal,
        unknown or missing. Minima are compared with minima: ``loss_difference`` is the semantic
        minus the positional training loss, ``winner`` the branch that is the lower minimum, and
        ``test_gain`` the test error of the linear layer minus that of the winner. On the lines
        ``alpha_c`` and ``alpha_l`` the first and the last change sign, interpolated; each has its
        ``_stderr``, and is ``_trusted`` if the theory is at both neighbors. `dotphase.critical`
        computes them without a grid.

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
    chains = [(model, branch) for branch in (*informed, "positional") for model in models]
    solutions = continue_many(chains, grid.tolist(), progress=progress, settings=settings)
    return assemble_diagram(models, solutions, grid, steps, parameter, settings)


def assemble_diagram(
    models: Sequence[Model],
    chains: Sequence[Sequence[Solution]],
    grid: Float[np.ndarray, " alpha"],
    steps: Float[np.ndarray, " parameter"],
    parameter: str = "omega",
    settings: SolverSettings = SETTINGS,
) -> xr.Dataset:
    """Assemble the dataset of `diagram` from solutions along alpha.

    Each chain belongs to one model on one branch. The order is that of the models, first for each
    branch that counts as semantic, then for the positional one.
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
    """The lowest minimum; without one the lowest saddle; without either the first."""
    on_branch = [solution for solution in choice if solution.on_branch]
    minima = [solution for solution in on_branch if solution.is_minimum]
    return min(minima or on_branch, key=lambda solution: solution.train_loss, default=choice[0])


def _with_lines(dataset: xr.Dataset, parameter: str) -> xr.Dataset:
    """Add the loss difference, the winner, the test gain and the critical lines."""
    semantic, positional = (dataset.sel(branch=name, drop=True) for name in SIDES)
    low, high = is_minimum(semantic), is_minimum(positional)
    difference = (semantic["train_loss"] - positional["train_loss"]).where(low & high)
    semantic_wins = low & ((difference < 0) | ~high)

    def winner(name: str) -> xr.DataArray:
        return xr.where(semantic_wins, semantic[name], positional[name])

    dataset["loss_difference"] = difference
    only_positional = xr.where(high, "positional", "none")
    dataset["winner"] = xr.where(semantic_wins, "semantic", only_positional)
    best = winner("test_error").where(semantic_wins | high)
    dataset["test_gain"] = dataset["linear_test_error"] - best
    dataset["winner_trusted"] = winner("trusted")
    columns = xr.Dataset(
        {
            "gap": difference,
            "gap_slope": semantic["loss_slope"] - positional["loss_slope"],
            "gap_stderr": np.hypot(semantic["train_loss_stderr"], positional["train_loss_stderr"]),
            "gap_trusted": semantic["trusted"] & positional["trusted"],
            "gain": dataset["test_gain"],
            "gain_stderr": winner("test_error_stderr"),
            "gain_trusted": dataset["winner_trusted"],
        }
    )
    lines = []
    for value in dataset[parameter].values:
        row = {str(name): part.values for name, part in columns.sel({parameter: value}).items()}
        lines.append(_critical_points(dataset["alpha"].values, row))
    descriptions = {
        "alpha_c": "training losses cross",
        "alpha_c_stderr": "of the points and of the interpolation",
        "alpha_c_trusted": "true if both minima are trusted next to it",
        "alpha_l": "test error passes the linear layer",
        "alpha_l_stderr": "of the points and of the interpolation",
        "alpha_l_trusted": "true if the lowest minimum is trusted next to it",
    }
    for (name, text), values in zip(descriptions.items(), zip(*lines, strict=True), strict=True):
        dataset[name] = (parameter, list(values), {"description": text})
    return add_labels(dataset)


def _critical_points(
    alpha: Float[np.ndarray, " alpha"], row: dict[str, np.ndarray]
) -> tuple[float, float, bool, float, float, bool]:
    """alpha_c and alpha_l at one value of the parameter, their errors, and trust.

    The error of the interpolation is estimated by the distance from a straight line.
    """
    fall = last_fall(alpha, row["gap"], row["gap_slope"])
    alpha_c = (np.nan, np.nan, False)
    if fall:
        pair = slice(fall.left, fall.left + 2)
        error = np.hypot(fall.stderr(row["gap_stderr"]), fall.interpolation_error)
        alpha_c = (fall.position, float(error), bool(row["gap_trusted"][pair].all()))
    # Without alpha_c (one branch exists nowhere) the whole grid is searched for alpha_l.
    gain = row["gain"]
    alpha_l = first_rise(alpha, gain, fall.position if fall else None)
    if not np.isfinite(alpha_l):
        return *alpha_c, np.nan, np.nan, False
    if fall and alpha_l == fall.position:
        return *alpha_c, *alpha_c
    index = int(np.clip(np.searchsorted(alpha, alpha_l) - 1, 0, alpha.size - 2))
    pair = slice(index, index + 2)
    slope = np.diff(gain[pair])[0] / np.diff(alpha[pair])[0]
    straight = alpha[index] - gain[index] / slope
    # A straight line across a jump of the lowest minimum has no meaning.
    bend = abs(alpha_l - straight) if alpha[index] <= straight <= alpha[index + 1] else 0.0
    error = np.hypot(np.nanmax(row["gain_stderr"][pair]) / abs(slope), bend)
    return *alpha_c, alpha_l, float(error), bool(row["gain_trusted"][pair].all())
