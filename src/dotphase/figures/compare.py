"""Theory, training and message passing of one model against alpha, with a verdict per point."""

from pathlib import Path
from typing import Any

import xarray as xr

from dotphase.experiments.comparison.agreement import DIFFERS
from dotphase.experiments.comparison.compare import LEFT, NO_BRANCH
from dotphase.figures.parts import lines
from dotphase.figures.parts.lines import ALPHA, OVERLAP_LABELS, TEST_ERROR, TRAIN_LOSS
from dotphase.figures.parts.style import COLORS, MARKERS, ink_color, new_figure

#: Legend of the lines, by theory.
THEORIES = {
    "state_evolution": lines.RS_MINIMA,
    "dynamics": lines.GRADIENT_DESCENT,
    "one_pass": "one pass (theory)",
}
#: Color of legend entries that belong to no branch.
LEGEND_COLOR = COLORS["uninformed"]
#: Marker of students that are not on the branch; open markers are theory that is not trusted.
OFF_BRANCH: dict[str, Any] = {"fmt": "P", "mec": "none", "mew": 0, "ms": 7}


def compare(dataset: xr.Dataset, path: str | Path | None = None) -> Any:
    """Plot theory, training and message passing against alpha.

    Lines are theory, with open markers where it is not trusted. Points are trained students with
    standard errors, and crosses message passing. Points become plus signs where most runs leave the
    branch or the theory has none. A ring marks points where training differs from the theory by
    more than the tolerance.

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
    scale = lines.overlap_scale(dataset)
    losses = {"train_loss": TRAIN_LOSS, "test_error": TEST_ERROR}
    losses = {name: label for name, label in losses.items() if name in dataset}
    size = (3.5 * (1 + len(losses)), 4.0)
    with new_figure(path, 1, 1 + len(losses), size=size) as (figure, axes):
        error, overlap = axes[-2:]
        any_untrusted = False
        for name in dataset["branch"].values.tolist():
            branch = dataset.sel(branch=name)
            panels = [
                (axis, part, 1.0, "-", name if axis is axes[0] else None)
                for axis, part in zip(axes, losses, strict=False)
            ]
            theory = branch.sel(source="theory")
            panels += [
                (overlap, part, scale, dashes, f"{symbol}, {name}")
                for (part, symbol), dashes in zip(OVERLAP_LABELS.items(), ("-", "--"), strict=True)
                if bool((theory[part].where(theory["on_branch"]) > lines.MIN_OVERLAP).any())
            ]
            for axis, part, unit, dashes, label in panels:
                color = COLORS.get(name, ink_color())
                style = {"color": color, "ls": dashes, "label": label}
                any_untrusted |= _plot_theory(axis, theory, theory[part] / unit, **style)
                _plot_runs(axis, branch, part, unit, color, MARKERS.get(name, "D"))
        lines.plot_linear_baseline(error, dataset["linear_test_error"])
        _add_entries(axes[0], dataset, any_untrusted)
        for axis, text in zip(axes, (*losses.values(), "overlaps"), strict=True):
            axis.set(xlabel=ALPHA, ylabel=text, ylim=(0, None))
        overlap.legend()
        handles = [handle for axis in axes[:-1] for handle in axis.get_legend_handles_labels()[0]]
        figure.legend(handles=handles, loc="outside lower center", ncols=5)
        lines.use_scientific_ticks(*axes[:-1])
    return figure


def _plot_theory(axis: Any, branch: xr.Dataset, values: xr.DataArray, **style: Any) -> bool:
    """Plot a branch; return True if any point is not trusted."""
    if branch["alpha"].size == 1:  # a line through one point is invisible
        point = values.where(branch["on_branch"])
        axis.plot(branch["alpha"], point, "_", ms=30, mew=1.5, color=style["color"])
    return lines.plot_branch(axis, branch, values, hollow={"marker": ".", "ms": 5}, **style)


def _plot_runs(
    axis: Any, branch: xr.Dataset, part: str, size: float, color: str, marker: str
) -> None:
    """Plot training and message passing of one branch, with rings around differences."""
    verdict, training = branch["verdict"], branch.sel(source="training")
    values, error = training[part] / size, training[f"{part}_stderr"] / size
    off_branch = verdict.isin([LEFT, NO_BRANCH])
    on = {"fmt": marker, "mec": ink_color(), "mew": 0.6}
    for mask, style in ((~off_branch, on), (off_branch, OFF_BRANCH)):
        axis.errorbar(training["alpha"], values.where(mask), error, color=color, lw=1, **style)
    ring = {"ms": 11, "mfc": "none", "mec": ink_color(), "mew": 1}
    axis.plot(training["alpha"], values.where(verdict == DIFFERS), "o", **ring)
    if "amp" in branch["source"]:
        passing = branch.sel(source="amp")
        axis.plot(passing["alpha"], passing[part] / size, "x", color=ink_color(), ms=6)


def _add_entries(axis: Any, dataset: xr.Dataset, any_untrusted: bool) -> None:
    """Add legend entries of the marks that occur in the figure."""
    theory, verdict = dataset.attrs.get("theory", "state_evolution"), dataset["verdict"]
    point = {"marker": "o", "color": LEGEND_COLOR, "ls": "none"}
    axis.plot([], [], color=LEGEND_COLOR, label=THEORIES[theory])
    axis.plot([], [], mec=ink_color(), label=f"training, $d = {dataset.attrs['d']}$", **point)
    if "amp" in dataset["source"]:
        axis.plot([], [], "x", color=ink_color(), label="message passing")
    if bool(verdict.isin([LEFT, NO_BRANCH]).any()):
        mark = {"marker": OFF_BRANCH["fmt"], "ms": OFF_BRANCH["ms"], "mew": OFF_BRANCH["mew"]}
        axis.plot([], [], label="training, not on the branch", **point | mark)
    if bool((lines.is_saddle(dataset) & dataset["on_branch"]).any()):
        lines.add_saddle_entry(axis, color=LEGEND_COLOR)
    if any_untrusted:
        lines.add_hollow_entry(axis, color=LEGEND_COLOR)
    if bool((verdict == DIFFERS).any()):
        axis.plot([], [], "o", ms=11, mfc="none", mec=ink_color(), label="differs")
