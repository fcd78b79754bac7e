"""Does the positional/semantic transition survive in other models? Theory beside training.

    python benchmarks/transitions.py cells NAME OMEGA
    python benchmarks/transitions.py lines NAME OMEGA
    python benchmarks/transitions.py train NAME
    python benchmarks/transitions.py draw

`cells` solves the branches of one model on a grid of alpha, `lines` looks for the transitions of
its lowest minimum, `train` trains students of all omegas on the same grid; they write into
out/transitions, so that they can run side by side. `draw` collects what is there into docs/data
and draws docs/images/transitions.png of it. Without arguments everything is done in turn.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import dotphase as dp

ROOT = Path(__file__).resolve().parents[1]
PARTS = ROOT / "out" / "transitions"
DATA, FIGURE = ROOT / "docs" / "data", ROOT / "docs" / "images" / "transitions.png"
SEEDS = 6
#: What is kept of the theory in every cell.
KEPT = ("train_loss", "train_loss_stderr", "test_error", "kind", "on_branch", "trusted")


@dataclass(frozen=True)
class Case:
    """A model, its grid, and the branches that compete in it."""

    title: str
    alphas: tuple[float, ...]
    omegas: tuple[float, ...] = (0.1, 0.2, 0.3, 0.5)
    branches: tuple[str, ...] = ("semantic", "positional")
    #: log2 of the points of a cell, and of a transition.
    points: tuple[int, int] = (14, 15)
    #: Of the trained students; those with the lowest loss of all starts are looked at.
    d: int = 400
    starts: tuple[str, ...] = ("semantic", "positional")
    given: dict[str, Any] = field(default_factory=dict)


CASES = {
    "causal-attention": Case("causal, 3 tokens", (0.4, 0.6, 0.9, 1.4, 2.4, 4.0)),
    "multi-head": Case(
        "two heads", (0.8, 1.5, 2.5, 4.0, 7.0, 12.0),
        branches=("semantic", "mixed", "positional"), points=(13, 14),
        d=200, starts=("semantic", "positional", "random"),
    ),
    "attention-classes": Case(
        "classes", (1.5, 3.0, 5.0, 8.0, 13.0, 20.0), (0.05, 0.1, 0.2, 0.3),
        given={"labels": "likeliest", "sigma": 0.7, "ridge": 1.0},
    ),
    "correlated-attention": Case("correlated, 0.3", (0.8, 1.2, 1.7, 2.4, 4.0, 6.0)),
}  # fmt: skip


def build(name: str, omega: float) -> dp.Model:
    """The model of a case."""
    return dp.load_model(name, omega=omega, **CASES[name].given)


def cells(name: str, omega: float) -> xr.Dataset:
    """The branches of one model along alpha."""
    case = CASES[name]
    found = dp.curve(build(name, omega), case.alphas, case.branches, log2_points=case.points[0])
    return found[list(KEPT)].drop_attrs()


def lines(name: str, omega: float) -> list[dict[str, Any]]:
    """Every transition of the lowest minimum, with its error."""
    case = CASES[name]
    ends = {"alpha_min": case.alphas[0], "alpha_max": case.alphas[-1]}
    found = dp.critical(build(name, omega), **ends, limits=False, log2_points=case.points[1])
    return [one.to_dict() for one in found.transitions]


def train(name: str) -> xr.Dataset:
    """What has been learned by the student with the lowest loss, for every data set."""
    case = CASES[name]
    runs = dp.grid(
        partial(build, name), case.alphas, case.omegas, d=case.d, starts=case.starts, seeds=SEEDS
    )  # fmt: skip
    lowest = runs["train_loss"].argmin("start")
    parts = {key: runs[key].isel(start=lowest).drop_vars("start").drop_attrs()
             for key in ("mechanism", "train_loss", "test_error")}  # fmt: skip
    return xr.Dataset(parts).assign_attrs(d=case.d)


def collect(name: str) -> xr.Dataset | None:
    """All rows of a model that are there, with the trained students beside them."""
    rows = {omega: PARTS / f"cells-{name}-{omega:g}.nc" for omega in CASES[name].omegas}
    solved = {omega: xr.load_dataset(path) for omega, path in rows.items() if path.exists()}
    kept = DATA / f"transition-{name}.nc"
    if not solved:
        return xr.load_dataset(kept) if kept.exists() else None
    grid = xr.concat(list(solved.values()), xr.Variable("omega", list(solved)))
    places = {f"{omega:g}": PARTS / f"lines-{name}-{omega:g}.json" for omega in solved}
    found = {key: json.loads(path.read_text()) for key, path in places.items() if path.exists()}
    grid.attrs = {"transitions": json.dumps(found), "log2_points": CASES[name].points}
    trained = PARTS / f"train-{name}.nc"
    if trained.exists():
        runs = xr.load_dataset(trained)
        runs = runs.rename({key: f"trained_{key}" for key in runs})
    else:  # those of last time
        before = xr.load_dataset(kept)
        runs = before[[key for key in before if key.startswith("trained_")]]
    grid = grid.assign(runs.data_vars)
    grid.attrs["d"] = runs.attrs["d"]
    grid.to_netcdf(kept, engine="h5netcdf")
    return grid


def lowest(cell: xr.Dataset) -> str:
    """The lowest minimum of a cell, or that there is none."""
    there = cell["on_branch"].values.astype(bool) & (cell["kind"].values != "saddle")
    if not there.any():
        return "uninformed"
    loss = np.where(there, cell["train_loss"].values, np.inf)
    return str(cell["branch"].values[np.argmin(loss)])


def draw(found: dict[str, xr.Dataset]) -> None:
    """Draw the figure for light and dark pages."""
    from dotphase.figures.parts.style import save, theme

    for shade, suffix in (("light", ""), ("dark", "-dark")):
        with theme(shade):
            save(panels(found), FIGURE.with_stem(FIGURE.stem + suffix), small=True)


def panels(found: dict[str, xr.Dataset]) -> Any:
    """One panel for each model: the lowest minimum in theory (squares) and trained (circles)."""
    from dotphase.figures.parts.style import COLORS, ink_color, new_figure, page_color

    with new_figure(None, 2, -(-len(found) // 2), size=(8.4, 6.6)) as (figure, axes):
        for axis, (name, grid) in zip(axes.flat, found.items(), strict=True):
            for omega in grid["omega"].values:
                for alpha in grid["alpha"].values:
                    cell = grid.sel(omega=omega, alpha=alpha)
                    axis.plot(alpha, omega, "s", ms=22, alpha=0.4, mew=0,
                              color=COLORS[lowest(cell)])  # fmt: skip
                    names, counts = np.unique(cell["trained_mechanism"].values, return_counts=True)
                    color = COLORS.get(str(names[np.argmax(counts)]), COLORS["uninformed"])
                    axis.plot(alpha, omega, "o", ms=8, color=color,
                              mfc=page_color() if len(names) > 1 else color)  # fmt: skip
            for line in lines_of(grid):
                alpha, error, omega = (np.asarray(part) for part in zip(*line, strict=True))
                axis.errorbar(alpha, omega, xerr=error, color=ink_color(), lw=1.4, marker=".", ms=4)
            axis.set(title=CASES[name].title, xlabel=r"$\alpha$", ylabel=r"$\omega$", xscale="log")
            axis.set_ylim(0, 1.2 * float(grid["omega"].max()))
            axis.set_xticks(grid["alpha"].values, [f"{a:g}" for a in grid["alpha"].values])
            axis.minorticks_off()
        figure.legend(handles=_key(axes.flat[0]), loc="outside lower center", ncols=4)
    return figure


def _key(axis: Any) -> list[Any]:
    """Legend entries of all marks."""
    from dotphase.figures.parts.style import COLORS, ink_color, page_color

    gray = COLORS["uninformed"]
    entries: list[tuple[str, dict[str, Any]]] = [
        *((name, {"marker": "s", "color": COLORS[name], "ls": "none", "ms": 8})
          for name in ("positional", "mixed", "semantic")),
        ("theory: lowest minimum", {"marker": "s", "color": gray, "alpha": 0.4, "ls": "none",
                                    "ms": 14, "mew": 0}),
        ("trained: lowest run", {"marker": "o", "color": gray, "ls": "none", "ms": 7}),
        ("trained: data sets differ", {"marker": "o", "color": gray, "mfc": page_color(),
                                       "ls": "none", "ms": 7}),
        ("transition of the theory", {"marker": ".", "color": ink_color(), "lw": 1.4}),
    ]  # fmt: skip
    return [axis.plot([], [], label=label, **style)[0] for label, style in entries]


def lines_of(grid: xr.Dataset) -> list[list[tuple[float, float, float]]]:
    """Transitions of the same two minima, as (alpha, error, omega) with rising omega."""
    joined: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
    for omega, row in json.loads(grid.attrs["transitions"]).items():
        for one in row:
            place = (one["alpha"], one["stderr"], float(omega))
            joined.setdefault((one["before"], one["after"]), []).append(place)
    return list(joined.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("step", nargs="?", choices=("cells", "lines", "train", "draw"))
    parser.add_argument("name", nargs="?", choices=list(CASES))
    parser.add_argument("omega", nargs="?", type=float)
    given = parser.parse_args()
    PARTS.mkdir(parents=True, exist_ok=True)
    for name in [given.name] if given.name else CASES:
        for omega in [given.omega] if given.omega is not None else CASES[name].omegas:
            if given.step in (None, "cells"):
                path = PARTS / f"cells-{name}-{omega:g}.nc"
                cells(name, omega).to_netcdf(path, engine="h5netcdf")
            if given.step in (None, "lines"):
                path = PARTS / f"lines-{name}-{omega:g}.json"
                path.write_text(json.dumps(lines(name, omega)))
        if given.step in (None, "train"):
            train(name).to_netcdf(PARTS / f"train-{name}.nc", engine="h5netcdf")
    if given.step in (None, "draw"):
        found = {name: collect(name) for name in CASES}
        draw({name: grid for name, grid in found.items() if grid is not None})


if __name__ == "__main__":
    main()
