"""Draw the figures of `reproduction.heads` from their stored results.

``python -m reproduction.heads.draw`` writes ``docs/images/heads-*.png``, light and dark.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import dotphase as dp
from dotphase.plot import style

DOCS = Path(__file__).parents[2] / "docs"
SHARES = ("positional", "semantic")


def students(path: Path) -> Any:
    """Shares in the solvable model against alpha: both branches, and trained students."""
    data = xr.load_dataset(DOCS / "data/heads_students.nc")
    lowest = data["train_loss"].fillna(np.inf).argmin("branch")
    with style.new_figure(path, 1, 2, size=(8.2, 3.2), sharey=True) as (_, axes):
        for axis, share in zip(axes, SHARES, strict=True):
            for number, branch in enumerate(data["branch"].values):
                line, color = data[share].sel(branch=branch), style.COLORS[str(branch)]
                axis.plot(data["alpha"], line, ls=":", lw=1, color=color)
                label = f"{branch} minimum"
                axis.plot(data["alpha"], line.where(lowest == number), color=color, label=label)
                mean = data[f"{share}_trained"].sel(branch=branch)
                error = data[f"{share}_stderr_trained"].sel(branch=branch)
                axis.errorbar(
                    data["alpha_trained"], mean, error, fmt=style.MARKERS[str(branch)], color=color,
                    mfc="none", label=f"students, {branch} start",
                )  # fmt: skip
            axis.set(xlabel=r"$\alpha$", title=f"{share} share", ylim=(0, 1))
        axes[0].legend(loc="upper right", fontsize=7)
    return path


def transformer(path: Path) -> Any:
    """Shares and accuracy of the small transformers against the number of sequences."""
    data = xr.load_dataset(DOCS / "data/heads_transformer.nc")
    with style.new_figure(path, 1, 2, size=(8.2, 3.2)) as (_, axes):
        for share in SHARES:
            color, marker = style.COLORS[share], style.MARKERS[share]
            end = data[share].sel(time="end")
            axes[0].plot(data["sequences"], end, marker, color=color, mfc="none")
            axes[0].plot(data["sequences"], end.mean("seed"), color=color, label=share)
            start = float(data[share].sel(time="start").mean())
            axes[0].axhline(start, color=color, ls=":", lw=1)
            axes[0].text(
                data["sequences"][-1],
                start + 0.015,
                "before training",
                color=color,
                ha="right",
                fontsize=7,
            )
        labels = {"train": "training", "usual": "fixed offset right", "unusual": "induction only"}
        inks = (style.ink_color(), style.COLORS["mixed"], style.COLORS["linear"])
        for (name, label), color in zip(labels.items(), inks, strict=True):
            values = data[f"accuracy_{name}"]
            axes[1].plot(data["sequences"], values, ".", color=color)
            axes[1].plot(data["sequences"], values.mean("seed"), color=color, label=label)
        for axis, title in zip(axes, ("share", "accuracy"), strict=True):
            axis.set(
                xscale="log", xlabel="different training sequences", ylabel=title, ylim=(0, 1.02)
            )
            axis.legend(fontsize=7, loc="center right" if title == "accuracy" else (0.66, 0.67))
    return path


def encoder(path: Path) -> Any:
    """Map of the pretrained encoder."""
    return dp.plot.heads(xr.load_dataset(DOCS / "data/heads_encoder.nc"), path)


def main() -> None:
    for function in (students, transformer, encoder):
        if (DOCS / f"data/heads_{function.__name__}.nc").exists():
            name = f"heads-{function.__name__}"
            function(DOCS / f"images/{name}.png")
            with style.theme("dark"):
                function(DOCS / f"images/{name}-dark.png")


if __name__ == "__main__":
    main()
