"""Phase diagrams: both branches on a grid of alpha and one parameter of the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float
from scipy.interpolate import PchipInterpolator

from dotphase.errors import InvalidInput
from dotphase.experiments.crossing import last_crossing
from dotphase.model import Model
from dotphase.storage.provenance import provenance
from dotphase.theory.solution import Solution
from dotphase.theory.solve import continue_many

#: log2 of the Gaussian points of every cell: about .2% in losses, 1% in overlaps.
POINTS = 14

BRANCHES = ("semantic", "positional")

_PARTS = {
    "train_loss": "training loss per dimension, eps_t",
    "test_error": "test error, eps_g",
    "loss_slope": "derivative of the training loss in alpha",
    "m": "norm of m of token 1",
    "theta": "norm of theta of token 1",
    "q": "norm of q of token 1",
    "V": "norm of V of token 1",
}


def diagram(
    family: Callable[[float], Model],
    alphas: Sequence[float],
    values: Sequence[float],
    parameter: str = "omega",
    *,
    informed: Sequence[str] = ("semantic",),
    log2_points: int = POINTS,
    seed: int = 0,
    progress: Callable[[Solution], None] | None = None,
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
    log2_points : int
        log2 of the Gaussian points of every cell.
    seed : int
        Seed of the Gaussian points, the same for all cells.
    progress : callable, optional
        Called with each solution as it is finished.

    Returns
    -------
    xarray.Dataset
        Dimensions ``branch``, `parameter` and ``alpha``. ``loss_difference`` is the semantic
        minus the positional training loss, ``winner`` the branch with the lower one,
        ``test_gain`` the linear layer's test error minus the winner's; ``alpha_c`` and
        ``alpha_l`` are the lines where the first and the last change sign, interpolated.
    """
    grid, steps = _increasing("alphas", alphas), _increasing(parameter, values)
    if grid.size < 2:
        raise InvalidInput("alphas", alphas, "must be two or more numbers")
    models = [family(float(value)) for value in steps]
    jobs = [(model, branch) for branch in (*informed, "positional") for model in models]
    chains = continue_many(
        jobs, grid.tolist(), log2_points=log2_points, seed=seed, progress=progress
    )
    return assemble_diagram(
        models, chains, grid, steps, parameter, log2_points=log2_points, seed=seed
    )


def assemble_diagram(
    models: Sequence[Model],
    chains: Sequence[Sequence[Solution]],
    grid: Float[np.ndarray, " alpha"],
    steps: Float[np.ndarray, " parameter"],
    parameter: str = "omega",
    *,
    log2_points: int = POINTS,
    seed: int = 0,
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
    shape = (len(BRANCHES), steps.size, grid.size)
    dims = ("branch", parameter, "alpha")
    solved = [solution for chain in chains for solution in chain]
    count = steps.size * grid.size
    rows = [solved[k * count : (k + 1) * count] for k in range(len(chains) // len(models))]
    cells = [_lowest(choice) for choice in zip(*rows[:-1], strict=True)] + rows[-1]
    dataset = xr.Dataset(
        coords={"branch": list(BRANCHES), parameter: steps, "alpha": grid},
        attrs=provenance(models[0], parameter=parameter, log2_points=log2_points, seed=seed),
    )

    def fill(name: str, read: Callable[[Solution], Any], description: str) -> None:
        values = np.asarray([read(cell) for cell in cells]).reshape(shape)
        dataset[name] = (dims, values, {"description": description})

    for name, description in _PARTS.items():
        fill(name, lambda s, key=name: s.value(key), description)  # type: ignore[misc]
    for name in ("train_loss", "test_error"):
        fill(f"{name}_stderr", lambda s, key=name: s.stderr[key], "standard error")  # type: ignore[misc]
    fill("found", lambda s: s.found, "branch that the fixed point belongs to")
    fill("converged", lambda s: s.converged, "whether the solver converged")
    fill("on_branch", lambda s: s.there, "whether it is the branch asked for")
    fill("trusted", lambda s: s.stability.trusted, "whether the theory can be trusted")
    linear = [chains[index][0].linear_test_error for index in range(steps.size)]
    dataset["linear_test_error"] = (parameter, linear)
    return _with_lines(dataset, parameter)


def _lowest(choice: Sequence[Solution]) -> Solution:
    """The solution with the lowest training loss among those that exist; the first if none does."""
    return min(
        (solution for solution in choice if solution.there),
        key=lambda solution: solution.train_loss,
        default=choice[0],
    )


def _increasing(field: str, values: Sequence[float]) -> np.ndarray:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or array.size == 0 or not np.all(np.diff(array) > 0):
        raise InvalidInput(field, values, "must be increasing numbers")
    return array


def _with_lines(dataset: xr.Dataset, parameter: str) -> xr.Dataset:
    """Add what is read off the two branches: difference, winner, gain, and the lines."""
    semantic, positional = (dataset.sel(branch=name, drop=True) for name in BRANCHES)
    both = semantic["on_branch"] & positional["on_branch"]
    difference = (semantic["train_loss"] - positional["train_loss"]).where(both)
    semantic_wins = semantic["on_branch"] & ((difference < 0) | ~positional["on_branch"])
    best = xr.where(semantic_wins, semantic["test_error"], positional["test_error"])
    best = best.where(semantic_wins | positional["on_branch"])
    trusted = xr.where(semantic_wins, semantic["trusted"], positional["trusted"])
    dataset["loss_difference"] = difference
    dataset["winner"] = xr.where(
        semantic_wins, "semantic", xr.where(positional["on_branch"], "positional", "none")
    )
    dataset["test_gain"] = dataset["linear_test_error"] - best
    dataset["winner_trusted"] = trusted
    slope = semantic["loss_slope"] - positional["loss_slope"]
    lines_c, lines_l = [], []
    for value in dataset[parameter].values:
        row = dataset.sel({parameter: value})
        gap, steepness = row["loss_difference"].values, slope.sel({parameter: value}).values
        crossing = last_crossing(row["alpha"].values, gap, steepness)
        alpha_c = crossing[0] if crossing else np.nan
        lines_c.append(alpha_c)
        lines_l.append(_passing(row["test_gain"], alpha_c))
    dataset["alpha_c"] = (parameter, lines_c, {"description": "training losses cross"})
    dataset["alpha_l"] = (parameter, lines_l, {"description": "test error passes the linear layer"})
    return dataset


def _passing(gain: xr.DataArray, alpha_c: float) -> float:
    """First alpha from alpha_c on at which the gain over the linear layer turns positive.

    Without a crossing (one branch is nowhere) it is looked for on the whole grid.
    """
    alpha, values = gain["alpha"].values, gain.values
    good = np.isfinite(values)
    if np.isfinite(alpha_c):
        good &= alpha > alpha_c
    if good.sum() < 2 or not np.any(values[good] > 0):
        return float("nan")
    if values[good][0] > 0:
        if not np.isfinite(alpha_c):
            return float("nan")
        # Between alpha_c and the next point of the grid: extend the curve to the left.
        curve = PchipInterpolator(alpha[good], values[good])
        slope = float(curve(alpha[good][0], 1))
        back = alpha[good][0] - values[good][0] / slope if slope > 0 else alpha_c
        return float(max(back, alpha_c))
    curve = PchipInterpolator(alpha[good], values[good])
    roots = curve.roots(extrapolate=False)
    return float(roots[0]) if roots.size else float("nan")
