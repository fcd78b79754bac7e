"""Gradient descent with and without momentum and mini-batches, theory and training."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from dotphase.plot.style import (
    GRADIENT_DESCENT,
    TRAIN_LOSS,
    add_theory_entries,
    ink_color,
    new_figure,
    overlap_scale,
    use_scientific_ticks,
)

#: Colors and markers of the rules; blue and orange are the branches.
SHADES = ("#7F7F7F", "#009E73", "#CC79A7", "#B79F00")
MARKERS = ("o", "s", "D", "^")
#: Number of points of a training.
SHOWN = 10


def plot_optimizers(
    paths: Mapping[str, tuple[xr.Dataset, xr.Dataset | None]], path: str | Path | None = None
) -> Any:
    """Training loss and theta against the steps, a color for each rule.

    Parameters
    ----------
    paths : mapping
        By label, the dataset of `dotphase.dynamics`, and the `path` of `dotphase.train` with
        ``record=True`` and the same rule, or None.
    """
    with new_figure(path, 1, 2, size=(8.6, 3.5)) as (figure, axes):
        for color, marker, (label, (theory, runs)) in zip(
            SHADES, MARKERS, paths.items(), strict=False
        ):
            quantities = (("train_loss", 1.0), ("theta", overlap_scale(theory)))
            for axis, (name, scale) in zip(axes, quantities, strict=True):
                style = {"color": color, "label": label if axis is axes[0] else None}
                axis.plot(theory["step"][1:], theory[name][1:] / scale, **style)
                if runs is None:
                    continue
                final_step = runs.sizes["step"] - 1
                steps = np.unique(np.geomspace(1, final_step, SHOWN).round().astype(int))
                points = runs[name].isel(step=steps) / scale
                count = points.sizes["seed"]
                error = points.std("seed", ddof=1) / np.sqrt(count) if count > 1 else None
                axis.errorbar(
                    points["step"], points.mean("seed"), error, fmt=marker, ms=4.5, lw=0.9,
                    color=color, mec=ink_color(), mew=0.5,
                )  # fmt: skip
        for axis, text in zip(axes, (TRAIN_LOSS, r"$\theta/\sigma^2$"), strict=True):
            axis.set(xlabel="step", ylabel=text, xscale="log")
        use_scientific_ticks(axes[0])
        axes[0].legend()
        trained = [runs for _, runs in paths.values() if runs is not None]
        add_theory_entries(axes[1], GRADIENT_DESCENT, *trained[:1])
        axes[1].legend()
    return figure
