"""Theory, training and message passing of one model against alpha, with a verdict per point."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from dotphase.experiments.comparison.agreement import DIFFERS
from dotphase.experiments.comparison.compare import LEFT, NO_BRANCH
from dotphase.figures.parts.lines import (
    ALPHA,
    GRADIENT_DESCENT,
    OVERLAP_LABELS,
    RS_MINIMA,
    TEST_ERROR,
    TRAIN_LOSS,
    add_hollow_entry,
    add_saddle_entry,
    is_saddle,
    overlap_scale,
    plot_branch,
    plot_linear_baseline,
    use_scientific_ticks,
)
from dotphase.figures.parts.style import COLORS, MARKERS, ink_color, new_figure, page_color

#: Legend of the lines, by theory.
THEORIES = {"state_evolution": RS_MINIMA, "dynamics": GRADIENT_DESCENT}
#: Overlaps below this are zero by symmetry in the theory.
SHOWN = 1e-6


def compare(dataset: xr.Dataset, path: str | Path | None = None) -> Any:
    """Draw a dataset of `dotphase.compare`.

    Lines are theory (the legend says which; hollow where it is not trusted), points trained
    students with standard errors, crosses message passing. Points are hollow where most runs leave
    the branch or the theory has none, and a ring marks where training differs from theory by more
    than is allowed.

    Parameters
    ----------
    dataset : xarray.Dataset
        From `dotphase.compare`.

    Examples
    --------
    >>> both = dp.compare(dp.positional_semantic(), [2.0], d=40, seeds=2, log2_points=12)
    >>> figure = dp.plot.compare(both, "compare.png")
    """
    dataset = dataset.sortby("alpha")
    theory, training = (dataset.sel(source=name) for name in ("theory", "training"))
    passed = dataset.sel(source="amp") if "amp" in dataset["source"] else None
    scale = overlap_scale(dataset)
    with new_figure(path, 1, 3, size=(10.4, 4.0)) as (figure, axes):
        loss, error, overlap = axes
        doubtful = ringed = False
        for name in dataset["branch"].values.tolist():
            branch = theory.sel(branch=name)
            color, marker = COLORS.get(name, ink_color()), MARKERS.get(name, "D")
            panels = [(loss, "train_loss", 1.0, "-", name), (error, "test_error", 1.0, "-", None)]
            panels += [
                (overlap, part, scale, dashes, f"{symbol}, {name}")
                for (part, symbol), dashes in zip(OVERLAP_LABELS.items(), ("-", "--"), strict=True)
                if bool((branch[part].where(branch["on_branch"]) > SHOWN).any())
            ]
            differs, off = branch["verdict"] == DIFFERS, branch["verdict"].isin([LEFT, NO_BRANCH])
            for axis, part, size, dashes, label in panels:
                doubtful |= plot_branch(
                    axis, branch, branch[part] / size, hollow={"marker": ".", "ms": 5},
                    color=color, ls=dashes, label=label,
                )  # fmt: skip
                if branch["alpha"].size == 1:  # a line has no length there
                    there = (branch[part] / size).where(branch["on_branch"])
                    axis.plot(branch["alpha"], there, "_", ms=30, mew=1.5, color=color)
                ours = training.sel(branch=name)
                for kept, edge, face in ((~off, ink_color(), color), (off, color, page_color())):
                    axis.errorbar(
                        ours["alpha"], (ours[part] / size).where(kept),
                        ours[f"{part}_stderr"] / size, fmt=marker, color=color, mec=edge,
                        mfc=face, mew=0.6, lw=1,
                    )  # fmt: skip
                ring = (ours[part] / size).where(differs)
                ringed |= bool(np.isfinite(ring).any())
                axis.plot(ours["alpha"], ring, "o", ms=11, mfc="none", mec=ink_color(), mew=1)
                if passed is not None:
                    other = passed.sel(branch=name)
                    axis.plot(other["alpha"], other[part] / size, "x", color=ink_color(), ms=6)
        plot_linear_baseline(error, dataset["linear_test_error"])
        d, name = dataset.attrs["d"], dataset.attrs.get("theory", "state_evolution")
        loss.plot([], [], color=COLORS["uninformed"], label=THEORIES[name])
        entries = {"marker": "o", "color": COLORS["uninformed"], "ls": "none"}
        loss.plot([], [], mec=ink_color(), label=f"training, $d = {d}$", **entries)
        if passed is not None:
            loss.plot([], [], "x", color=ink_color(), label="message passing")
        if bool(theory["verdict"].isin([LEFT, NO_BRANCH]).any()):
            hollow = entries | {"mfc": page_color(), "mec": COLORS["uninformed"]}
            loss.plot([], [], label="training, not on the branch", **hollow)
        if bool((is_saddle(theory) & theory["on_branch"]).any()):
            add_saddle_entry(loss, color=COLORS["uninformed"])
        if doubtful:
            add_hollow_entry(loss, color=COLORS["uninformed"])
        if ringed:
            loss.plot([], [], "o", ms=11, mfc="none", mec=ink_color(), label="differs")
        for axis, text in zip(axes, (TRAIN_LOSS, TEST_ERROR, "overlaps"), strict=True):
            axis.set(xlabel=ALPHA, ylabel=text, ylim=(0, None))
        overlap.legend()
        handles = [
            handle for axis in (loss, error) for handle in axis.get_legend_handles_labels()[0]
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=5)
        use_scientific_ticks(loss, error)
    return figure
