"""Draw the two panels of the README: which minimum is lower, and which generalizes.

``python docs/pictures/two_minima.py --compute`` solves both branches (a minute of CPU time) and
stores them in ``docs/data/two_minima.nc``. Without ``--compute`` it draws them, with the trained
students and the critical points of the full reproduction.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

import dotphase as dp
from dotphase.plot import style

DOCS = Path(__file__).parents[1]
THEORY = DOCS / "data/two_minima.nc"
REPRODUCTION = DOCS / "reproduction"
PICTURE = DOCS / "images/two-minima.png"
BRANCHES = ("semantic", "positional")
OMEGA, ALPHAS = 0.3, (0.75, 2.0)
QUANTITIES = ["train_loss", "train_loss_stderr", "test_error", "test_error_stderr"]


def compute() -> None:
    """Solve both branches."""
    theory = dp.curve(
        dp.positional_semantic(omega=OMEGA), np.linspace(*ALPHAS, 26).tolist(), log2_points=15
    )
    theory[QUANTITIES].to_netcdf(THEORY, engine="h5netcdf")


def students() -> xr.Dataset:
    """Return means and standard errors of the students of the reproduction, d = 1000."""
    table = pd.read_csv(REPRODUCTION / "tables/released-runs.csv.gz")
    table = table[(table.table == "maps standard") & np.isclose(table.omega, OMEGA)]
    table = table[table.alpha.between(*ALPHAS) & table.quantity.isin(["train_loss", "test_error"])]
    table = table.assign(stderr=table.ours_spread / np.sqrt(table.ours_runs))
    return table.set_index(["quantity", "start", "alpha"])[["ours", "stderr"]].to_xarray()


def critical() -> dict[str, float]:
    """Return alpha_c, alpha_l and the test error of the linear layer, from the report."""
    report = json.loads((REPRODUCTION / "report.json").read_text(encoding="utf-8"))
    rows = next(item["rows"] for item in report["items"] if item["name"] == "transition")
    names = ("alpha_c", "alpha_l", "linear_test_error")
    return {name: next(r["ours"] for r in rows if r["quantity"] == name) for name in names}


def draw(path: Path) -> Any:
    """Draw the difference of the training losses, and the test errors."""
    theory, runs, points = xr.load_dataset(THEORY), students(), critical()
    with style.new_figure(None, 1, 2, size=(8.6, 3.3)) as (figure, axes):
        draw_difference(axes[0], theory, runs, points["alpha_c"])
        draw_test_error(axes[1], theory, runs, points)
        for axis in axes:
            axis.set(xlabel=r"sentences per dimension $\alpha$", xlim=(0.73, 2.03))
        style.save(figure, path, small=True)
    return figure


def draw_difference(axis: Any, theory: xr.Dataset, runs: xr.Dataset, alpha_c: float) -> None:
    """Draw positional minus semantic training loss; its sign decides which minimum wins."""
    loss = 1e3 * theory.train_loss
    gap = loss.sel(branch="positional") - loss.sel(branch="semantic")
    axis.axhline(0, color=style.ink_color(), lw=0.7)
    axis.axvline(alpha_c, color=style.ink_color(), lw=1, ls=":")
    for name, where in (("positional", gap <= 0), ("semantic", gap >= 0)):
        shade = {"color": style.COLORS[name], "alpha": 0.3, "lw": 0}
        axis.fill_between(gap.alpha, gap, 0, where=where, interpolate=True, **shade)
    axis.plot(gap.alpha, gap, color=style.ink_color(), label="theory")
    trained = 1e3 * runs.sel(quantity="train_loss")
    height = trained.ours.sel(start="positional") - trained.ours.sel(start="semantic")
    # Both starts use the same data, so that this bounds the error of the difference.
    error = np.hypot(*(trained.stderr.sel(start=name) for name in BRANCHES))
    axis.errorbar(
        height.alpha, height, error, fmt="o", color=style.ink_color(), mfc=style.page_color(),
        label="trained students, $d = 1000$",
    )  # fmt: skip
    axis.text(0.79, 0.12, "positional wins", color=style.COLORS["positional"], fontsize=11)
    axis.text(1.6, 0.08, "semantic wins", color=style.COLORS["semantic"], fontsize=11)
    axis.text(alpha_c + 0.02, 0.62, r"$\alpha_c$", fontsize=11)
    axis.set_ylabel(r"difference of the training losses $\times 10^3$")
    axis.legend(loc="upper left")


def draw_test_error(
    axis: Any, theory: xr.Dataset, runs: xr.Dataset, points: dict[str, float]
) -> None:
    """Draw the test errors of both minima and of the linear layer."""
    axis.axhline(1e3 * points["linear_test_error"], color=style.COLORS["linear"], lw=1.6, ls="--")
    axis.axvline(points["alpha_l"], color=style.ink_color(), lw=1, ls=":")
    trained = 1e3 * runs.sel(quantity="test_error")
    for name in BRANCHES:
        axis.plot(theory.alpha, 1e3 * theory.test_error.sel(branch=name), color=style.COLORS[name])
        at = trained.sel(start=name)
        axis.errorbar(
            at.alpha, at.ours, at.stderr, fmt=style.MARKERS[name], color=style.COLORS[name],
            mfc=style.page_color(),
        )  # fmt: skip
    axis.text(1.53, 3.24, "positional minimum", color=style.COLORS["positional"], fontsize=10)
    axis.text(0.78, 2.24, "semantic minimum", color=style.COLORS["semantic"], fontsize=10)
    axis.text(0.78, 1.83, "linear layer", color=style.COLORS["linear"], fontsize=10)
    axis.text(points["alpha_l"] + 0.02, 2.75, r"$\alpha_l$", fontsize=11)
    axis.set_ylabel(r"test error $\times 10^3$")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compute", action="store_true")
    if parser.parse_args().compute:
        compute()
    for shade in ("light", "dark"):
        suffix = "" if shade == "light" else "-dark"
        with style.theme(shade):
            draw(PICTURE.with_stem(PICTURE.stem + suffix))


if __name__ == "__main__":
    main()
