"""Does the positional/semantic transition survive in other models? Theory beside training.

    python benchmarks/transitions.py [NAME ...] [--draw]

For each model the two branches on a coarse grid of alpha and omega, in theory and trained at
d = 150; results go to docs/data, and `--draw` makes docs/images/transitions.png of them.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import dotphase as dp
from dotphase.figures.parts.style import COLOURS, drawing, ink

DOCS = Path(__file__).resolve().parents[1] / "docs"
OMEGAS = [0.1, 0.3, 0.5]
D, SEEDS = 150, 3
#: By name: title, parameters, sample complexities, branches that count as semantic.
MODELS: dict[str, tuple[str, dict[str, Any], list[float], tuple[str, ...]]] = {
    "causal-attention": ("causal, 3 tokens", {}, [0.4, 0.8, 1.4, 2.4], ("semantic",)),
    "correlated-attention": ("correlated, 0.3", {}, [0.8, 1.4, 2.4, 4.0], ("semantic",)),
    "attention-classes": ("classes", {}, [1.0, 3.0, 6.0, 12.0], ("semantic",)),
    "multi-head": ("two heads", {}, [0.8, 1.5, 2.5, 4.5], ("mixed", "semantic")),
}


def compute(name: str) -> xr.Dataset:
    """Theory and training of one model on its grid."""
    _, given, alphas, informed = MODELS[name]

    def family(omega: float) -> dp.Model:
        return dp.load_model(name, omega=omega, **given)

    theory = dp.diagram(family, alphas, OMEGAS, informed=informed, log2_points=12)
    starts = (informed[0], "positional")
    runs = dp.grid(family, alphas, OMEGAS, d=D, starts=starts, seeds=SEEDS)
    lowest = runs["mechanism"].isel(start=runs["train_loss"].argmin("start"))
    parts = {
        "theory": theory["loss_difference"],
        "winner": theory["winner"].astype(str),
        "alpha_c": theory["alpha_c"],
        "share": (lowest.isin(list(informed))).mean("seed"),
    }
    found = xr.Dataset({key: part.drop_attrs() for key, part in parts.items()})
    return found.drop_attrs().assign_attrs(model=name, d=D, seeds=SEEDS)


def draw(found: dict[str, xr.Dataset]) -> None:
    """One panel for each model: who has the lower loss, in theory (ground) and trained (marks)."""
    size = (3.0 * len(found), 2.9)
    with drawing(DOCS / "images" / "transitions.png", size=size, columns=len(found)) as (_, axes):
        for axis, (name, cells) in zip(np.atleast_1d(axes), found.items(), strict=True):
            for omega in cells["omega"].values:
                for alpha in cells["alpha"].values:
                    cell = cells.sel(omega=omega, alpha=alpha)
                    winner, share = str(cell["winner"].item()), float(cell["share"])
                    axis.plot(alpha, omega, "s", ms=15, alpha=0.45, mew=0,
                              color=COLOURS.get(winner, COLOURS["uninformed"]))  # fmt: skip
                    trained = COLOURS["semantic" if share > 0.5 else "positional"]
                    axis.plot(alpha, omega, "o", ms=6, color=trained,
                              mfc="none" if 0 < share < 1 else trained)  # fmt: skip
            axis.plot(cells["alpha_c"], cells["omega"], color=ink(), lw=1)
            axis.set(title=MODELS[name][0], xlabel=r"$\alpha$", xscale="log", ylim=(0, 0.6))
            axis.set_xticks(cells["alpha"].values, [f"{a:g}" for a in cells["alpha"].values])
            axis.minorticks_off()
        np.atleast_1d(axes)[0].set_ylabel(r"$\omega$")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--draw", action="store_true")
    given = parser.parse_args()
    for name in given.names or ([] if given.draw else list(MODELS)):
        compute(name).to_netcdf(DOCS / "data" / f"transition-{name}.nc")
        print(name, "done", flush=True)
    if given.draw:
        paths = {name: DOCS / "data" / f"transition-{name}.nc" for name in MODELS}
        draw({name: xr.load_dataset(path) for name, path in paths.items() if path.exists()})


if __name__ == "__main__":
    main()
