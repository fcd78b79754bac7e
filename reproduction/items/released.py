"""Every number that the authors released, compared with ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from dotphase import positional_semantic, solve_many
from reproduction.figures.difference_maps import plot_difference_maps
from reproduction.figures.differences import plot_differences
from reproduction.item import Datasets, Item
from reproduction.released import procedure
from reproduction.released.grids import (
    MAPS,
    RANK_TWO,
    SLICES,
    Grid,
    scaling_grids,
    slice_grid,
    trained,
)
from reproduction.released.tables import (
    PAIRS,
    RUNS,
    combine,
    expected_beyond,
    expected_width,
    list_values,
    table,
    worst,
)
from reproduction.store import Parts
from reproduction.verdict import UNDECIDED, Row, within

SOURCE = "arXiv:2402.03902, released tables"
#: Our name for each column of the table of solutions, with its factor.
SOLVED = {
    "q": ("q", 1.0),
    "m": ("m", 1.0),
    "V": ("V", 1.0),
    "theta": ("theta", 1.0),
    "test_error_times_L": ("test_error", 2.0),
    "minus_train_loss": ("train_loss", -1.0),
}
#: Chance explains the least likely value if more values than this are expected to be as unlikely.
UNUSUAL = 0.05
#: Largest relative difference of the released procedure from a released solution.
REPRODUCED = 5e-3


def compute(parts: Parts, sizes: Mapping[str, Any]) -> Datasets:
    """Our runs at the released settings, and the solutions by two methods."""
    grids: Mapping[str, Grid] = sizes["grids"]
    return {
        "runs": {name: trained(parts, grid) for name, grid in grids.items()},
        "theory": parts.get("theory", sizes["theory"], lambda: _theory(**sizes["theory"])),
        "procedure": parts.get("procedure", {"version": 2}, _procedure),
    }


def _theory(every: int, **rule: Any) -> xr.Dataset:
    """Our solutions at every `every`-th point of the released table."""
    released = table("theory").isel(point=slice(None, None, every))
    problems = [
        (positional_semantic(float(omega), mixing=str(mixing)), float(alpha), str(branch))
        for omega, mixing, alpha, branch in zip(
            *(released[name].values for name in ("omega", "mixing", "alpha", "branch")), strict=True
        )
    ]
    solutions = solve_many(problems, **rule)
    numbers: dict[str, Any] = {}
    for name in ("q", "m", "V", "theta"):
        numbers[name] = [solution.norms[name] for solution in solutions]
        numbers[f"{name}_stderr"] = [solution.stderr[name] for solution in solutions]
    for name in ("train_loss", "test_error"):
        numbers[name] = [getattr(solution, name) for solution in solutions]
        numbers[f"{name}_stderr"] = [solution.stderr[name] for solution in solutions]
    numbers["on_branch"] = [int(solution.on_branch) for solution in solutions]
    numbers["trusted"] = [int(solution.stability.trusted) for solution in solutions]
    chosen = np.arange(table("theory").sizes["point"])[::every]
    return xr.Dataset(
        {name: ("point", np.asarray(values, float)) for name, values in numbers.items()},
        coords={"place": ("point", chosen)},
    )


def _procedure() -> xr.Dataset:
    """The released procedure at all points of the released table."""
    released = table("theory")
    results = {
        name: np.full(released.sizes["point"], np.nan)
        for name in ("q", "m", "V", "theta", "train_loss", "test_error")
    }
    for mixing, omega, branch in _tables(released):
        points = _of_table(released, mixing, omega, branch)
        problem = procedure.problem(released["alpha"].values[points], omega, mixing=mixing)
        solved = procedure.solve(problem, branch)
        for name, values in zip(("q", "m", "V", "theta"), solved.overlaps, strict=True):
            results[name][points] = np.abs(values)
        results["train_loss"][points], results["test_error"][points] = (
            solved.train_loss,
            solved.test_error,
        )
    standard = np.full(released.sizes["point"], np.nan)
    points = _of_table(released, "other", 0.15, "semantic")
    problem = procedure.problem(released["alpha"].values[points], 0.15)
    standard[points] = procedure.solve(problem, "semantic").train_loss
    results["train_loss_standard"] = standard
    return xr.Dataset({name: ("point", values) for name, values in results.items()})


def _tables(released: xr.Dataset) -> list[tuple[str, float, str]]:
    """The parts of the table of solutions, in order: matrix A, omega and branch."""
    keys = zip(*(released[name].values for name in ("mixing", "omega", "branch")), strict=True)
    return list(dict.fromkeys((str(a), round(float(b), 4), str(c)) for a, b, c in keys))


def _of_table(released: xr.Dataset, mixing: str, omega: float, branch: str) -> np.ndarray:
    matches = (released["mixing"] == mixing) & (released["branch"] == branch)
    return np.flatnonzero(matches & (abs(released["omega"] - omega) < 1e-3))


def compared(runs: Mapping[str, xr.Dataset]) -> xr.Dataset:
    """All released values of runs with ours; grids at other dimensions are skipped."""
    lists = []
    for name, ours in runs.items():
        d, sigma, ridge = (
            int(ours.attrs["d"]),
            float(ours.attrs["sigma"]),
            float(ours.attrs["ridge"]),
        )
        labels = {"sigma": sigma, "ridge": ridge, "d": d, "mixing": str(ours.attrs["mixing"])}
        if name.startswith("dimension"):
            released = table("dimensions").sel(d=d).drop_vars("d")
            ours = ours.isel(alpha=0, omega=0)
            lists.append(list_values("dimensions", released, ours, RUNS, **labels))
        elif d != 1000:
            continue
        elif int(ours.attrs["rank"]) == 2:
            released = table("rank2").assign(linear_test_error_std=_linear_spread())
            ours = ours.isel(start=0)
            lists.append(list_values("rank2", released, ours, PAIRS, **labels))
        elif (sigma, ridge) == (0.5, 0.01):
            released = table("maps").sel(mixing=labels.pop("mixing"))
            lists.append(
                list_values(f"maps {released['mixing'].item()}", released, ours, RUNS, **labels)
            )
        else:
            released, slices = table("slices"), table("slices")[["sigma", "ridge"]]
            matches = (abs(slices["sigma"] - sigma) < 1e-6) & (abs(slices["ridge"] - ridge) < 1e-6)
            released = released.isel(slice=int(np.argmax(matches.values))).drop_vars(
                ("sigma", "ridge")
            )
            lists.append(list_values("slices", released, ours.isel(omega=0), RUNS, **labels))
    rows = combine(lists)
    borrowed = (rows["table"] == "rank2") & (rows["quantity"] == "linear_test_error")
    return rows.assign(stands_in=(rows["stands_in"].astype(bool) | borrowed).astype(np.int8))


def _linear_spread() -> xr.DataArray:
    """Spread of the linear layer's error, from runs of rank one at the same omega.

    It does not depend on the student, and none was released with the students of rank two.
    """
    spread = table("maps")["linear_test_error_std"].sel(mixing="standard", drop=True)
    return spread.mean("start").reindex(alpha=table("rank2")["alpha"], method="nearest")


def tables(datasets: Datasets) -> dict[str, xr.Dataset]:
    """All compared values: of runs, and of solutions by both methods."""
    solved = _solutions(datasets["procedure"], datasets["theory"])
    return {"released-runs": compared(datasets["runs"]), "released-solutions": solved}


def _solutions(by_procedure: xr.Dataset, ours: xr.Dataset) -> xr.Dataset:
    """Released solutions as a list, with the released procedure and ours with its error."""
    released = table("theory")
    points, quantities = ours["place"].values, []
    for name, (own_name, factor) in SOLVED.items():
        values, error = np.full((2, released.sizes["point"]), np.nan)
        exists = ours["on_branch"].values > 0
        values[points] = np.where(exists, factor * ours[own_name].values, np.nan)
        error[points] = np.where(exists, abs(factor) * ours[f"{own_name}_stderr"].values, np.nan)
        column = released[["mixing", "omega", "branch", "alpha"]].assign(
            quantity=("point", np.full(values.size, name)), value=abs(released[name]),
            procedure=("point", abs(factor) * by_procedure[own_name].values),
            ours=("point", abs(values)),
            ours_stderr=("point", error),
        )  # fmt: skip
        quantities.append(column)
    return xr.concat(quantities, "point")


def draw(datasets: Datasets) -> Any:
    """Histograms and maps of the normalized differences."""
    rows = compared(datasets["runs"])
    return {"histograms": plot_differences(rows), "maps": plot_difference_maps(rows)}


def compare(datasets: Datasets) -> list[Row]:
    """Compare mean and width of the normalized differences, and the released procedure."""
    rows = compared(datasets["runs"])
    lines = []
    for name in dict.fromkeys(rows["table"].values.tolist()):
        of_table = rows.isel(row=np.flatnonzero(rows["table"] == name))
        for quantity in dict.fromkeys(of_table["quantity"].values.tolist()):
            of_quantity = of_table.isel(row=np.flatnonzero(of_table["quantity"] == quantity))
            lines += _distribution(
                of_quantity, {"table": name, "values": of_quantity.sizes["row"]}, quantity
            )
    return lines + _reproduced(datasets["procedure"])


def _distribution(differences: xr.Dataset, at: dict[str, Any], quantity: str) -> list[Row]:
    """Compare mean and width of the differences with their expected values."""
    z, width = differences["difference"].values, expected_width(differences)
    cells = _over_starts(differences)
    mean_error = float(np.std(cells, ddof=1) / np.sqrt(cells.size))
    # Only our Q* is scaled, which may move a mean by its share 1/d.
    share = float((abs(differences["value"]) / (differences["d"] * differences["error"])).mean())
    mean_row = within(
        f"mean difference of {quantity} in standard errors", at, 0.0, (float(z.mean()), mean_error),
        3 * mean_error + share, SOURCE, "3 standard errors of the mean and 1/d of the values",
        tolerance=3 * mean_error + share,
    )  # fmt: skip
    spread_error = width / np.sqrt(2 * cells.size)
    width_row = within(
        f"width of the differences of {quantity}", at, width,
        (float(np.std(z, ddof=1)), spread_error), 3 * spread_error + 0.05, SOURCE,
        "3 standard errors and .05 from the width of Student's distribution",
        tolerance=3 * spread_error + 0.05,
    )  # fmt: skip
    if not bool(differences["stands_in"].any()):
        return [mean_row, width_row]
    why = "no spread was released; ours replaces it, and our Q* does not fluctuate"
    return [replace(row, verdict=UNDECIDED, why=why) for row in (mean_row, width_row)]


def _over_starts(rows: xr.Dataset) -> np.ndarray:
    """Average differences over the starts of a cell, which share the data."""
    names = ("omega", "sigma", "ridge", "d", "alpha")
    settings = np.stack([rows[name].values.astype(float) for name in names], axis=1)
    cell = np.unique(settings, axis=0, return_inverse=True)[1].ravel()
    return np.asarray(np.bincount(cell, rows["difference"].values) / np.bincount(cell))


def _reproduced(by_procedure: xr.Dataset) -> list[Row]:
    """Compare the procedure with the released solutions at omega = .3, its own results."""
    released, rows = table("theory"), []
    for branch in ("semantic", "positional"):
        points = _of_table(released, "standard", 0.3, branch)
        for name, (own_name, factor) in SOLVED.items():
            if name == {"semantic": "m", "positional": "theta"}[branch]:
                continue
            expected, ours = (
                released[name].values[points],
                factor * by_procedure[own_name].values[points],
            )
            largest = int(np.argmax(np.abs(ours / expected - 1)))
            at = {
                "branch": branch,
                "omega": 0.3,
                "alpha": float(released["alpha"][points[largest]]),
            }
            rows.append(
                within(
                    f"released procedure, {own_name}: the worst of {points.size}", at,
                    float(expected[largest]), (float(ours[largest]), 0.0),
                    REPRODUCED * abs(float(expected[largest])), SOURCE,
                    f"within {100 * REPRODUCED:g}%: the local minimization is ours",
                    tolerance=REPRODUCED * abs(float(expected[largest])),
                )
            )  # fmt: skip
    return rows


def remarks(datasets: Datasets) -> list[str]:
    """Remarks on the runs, then on the solutions."""
    return run_lines(compared(datasets["runs"])) + _solution_lines(datasets)


def run_lines(everything: xr.Dataset) -> list[str]:
    """Number and distribution of the differences, and the largest ones."""
    rows = everything.isel(row=np.flatnonzero(everything["stands_in"] == 0))
    z = rows["difference"].values
    beyond, chance = int(np.sum(np.abs(z) > 3)), expected_beyond(rows)
    solved = table("theory").sizes["point"] * len(SOLVED)
    lines = [
        f"{everything.sizes['row']} released values of runs and {solved} of solutions are "
        f"compared. Over the {z.size} values of runs that were released with a spread, the "
        f"normalized differences have mean {z.mean():+.3f} and width {z.std(ddof=1):.3f}; "
        f"{expected_width(rows):.3f} is expected, since spreads over 10 to 80 runs are estimates "
        "themselves.",
        f"Many comparisons: {beyond} of them lie beyond 3 standard errors; {chance:.0f} are "
        f"expected by chance.{_stand_ins(everything)}",
    ]
    for name in dict.fromkeys(everything["table"].values.tolist()):
        of_table = everything.isel(row=np.flatnonzero(everything["table"] == name))
        z_table = of_table["difference"].values
        marked = z_table[of_table["stands_in"].values > 0]
        text = f"{name}: {z_table.size} values, mean {z_table.mean():+.3f}, width "
        text += f"{z_table.std(ddof=1):.3f}"
        if marked.size:
            text += (
                f" (of these {marked.size} were released without a spread; ours, at |Q*|^2 = "
                f"d, replaces it and is smaller: width {marked.std(ddof=1):.2f})"
            )
        lines.append(
            text + f"; {int(np.sum(np.abs(z_table) > 3))} beyond 3, "
            f"{expected_beyond(of_table):.1f} expected."
        )
    unlikely = worst(rows, 10)
    if z.size:
        probability = float(unlikely["chance"][0])
        lines.append(
            f"The ten least likely follow. Of {z.size} values {z.size * probability:.1f} should be "
            "as unlikely as the first by chance alone. Chance explains them."
            if z.size * probability > UNUSUAL
            else f"The ten least likely follow. The first should not happen in {z.size} values: "
            f"{z.size * probability:.2g} are expected."
        )
    return lines + [_worst_line(unlikely.isel(row=k), k + 1) for k in range(unlikely.sizes["row"])]


def _stand_ins(everything: xr.Dataset) -> str:
    """The values without a released spread, which are not among the counted ones."""
    rows = everything.isel(row=np.flatnonzero(everything["stands_in"]))
    if not rows.sizes["row"]:
        return ""
    z, names = rows["difference"].values, rows["quantity"].values
    widest = max(z[names == name].std(ddof=1) for name in set(names.tolist()))
    return (
        f" Another {z.size} values (rank two) were released without a spread, which ours replaces: "
        f"{int(np.sum(np.abs(z) > 3))} lie beyond 3, with widths up to {widest:.2f}."
    )


def _worst_line(row: xr.Dataset, rank: int) -> str:
    """One of the worst values in words."""
    settings = ", ".join(
        f"{name} = {row[name].item():g}" for name in ("omega", "sigma", "ridge", "alpha", "d")
    )
    start = str(row["start"].item())
    text = (
        f"Worst {rank}: {row['quantity'].item()}, {row['table'].item()}, {settings}, {start} "
        f"start: released {row['value'].item():.4g} with spread {row['spread'].item():.2g}, ours "
        f"{row['ours'].item():.4g} with {row['ours_spread'].item():.2g}: "
        f"{row['difference'].item():+.1f} standard errors"
    )
    chance = f"by chance once in {1 / row['chance'].item():.0f} values"
    return f"{text}; {chance}, each spread being that of {row['runs'].item():.0f} runs."


def _standard_instead(released: xr.Dataset, by_procedure: xr.Dataset) -> str:
    """A table of the other A that the procedure gives with the standard one."""
    points = _of_table(released, "other", 0.15, "semantic")[:6]
    share = np.abs(
        by_procedure["train_loss_standard"].values[points]
        / -released["minus_train_loss"].values[points]
        - 1
    )
    return (
        "The table labeled as the other A at omega = 0.15 belongs to the standard A: with it the "
        f"released procedure is within {100 * share.max():.2g}% of its training loss on the "
        f"semantic branch, alpha of {float(released['alpha'][points[-1]]):.2g} and more."
    )


def _solution_lines(datasets: Datasets) -> list[str]:
    """Differences of the released procedure and of our solutions from the released solutions."""
    released, by_procedure, ours = table("theory"), datasets["procedure"], datasets["theory"]
    lines = []
    for mixing, omega, branch in _tables(released):
        points = _of_table(released, mixing, omega, branch)
        solved = np.flatnonzero(
            np.isin(ours["place"].values, points) & (ours["on_branch"].values > 0)
        )
        difference = _largest_differences(
            released.isel(point=points), by_procedure.isel(point=points)
        )
        our_difference = _largest_differences(
            released.isel(point=ours["place"].values[solved]), ours.isel(point=solved)
        )
        statement = f"the released procedure is within {difference} of the table"
        if branch == "uninformed":
            statement = "the start of the released iteration is unknown"
        lines.append(
            f"Solutions, {mixing} A, omega = {omega:g}, {branch}: {statement}; ours, converged in "
            f"the number of points, within {our_difference} at {solved.size} points "
            "where the branch exists."
        )
    return [*lines, _standard_instead(released, by_procedure)]


def _largest_differences(released: xr.Dataset, solutions: xr.Dataset) -> str:
    """Largest relative differences of V, training loss and test error."""
    largest = []
    for name in ("V", "minus_train_loss", "test_error_times_L"):
        own_name, factor = SOLVED[name]
        expected = released[name].values
        if not expected.size:
            return "nothing"
        if name == "minus_train_loss" and expected[0] > 0:
            continue  # the table at omega = .5 contains another constant
        share = np.nanmax(np.abs(factor * solutions[own_name].values / expected - 1))
        largest.append(f"{100 * share:.2g}% in {own_name}")
    return ", ".join(largest)


def _grids(scale: str) -> dict[str, Grid]:
    grids = {f"maps {name}": grid for name, grid in MAPS[scale].items()}
    if scale == "full":
        grids |= {f"slice {s:g} {r:g}": slice_grid(scale, s, r) for s, r in SLICES}
    grids |= {f"dimension {d}": grid for d, grid in scaling_grids(scale).items()}
    return grids | {"rank2": RANK_TWO[scale]}


SIZES = {
    "quick": {"grids": _grids("quick"), "theory": {"every": 13, "log2_points": 13}},
    "full": {"grids": _grids("full"), "theory": {"every": 1, "log2_points": 15}},
}
ITEM = Item("Every released number", compute, draw, compare, SIZES, remarks, tables)
