"""Structured tokens: test errors, critical points, real and Gaussian tokens."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from dotphase.plot.style import (
    ALPHA,
    COLORS,
    LINE_STYLES,
    MARKERS,
    RS_MINIMA,
    TEST_ERROR,
    add_branch_entries,
    empty_color,
    ink_color,
    new_figure,
    page_color,
    plot_seed_means,
    squeeze_parameter,
    use_scientific_ticks,
)

#: Colors of the exponents, in their order.
SHADES = (COLORS["random"], COLORS["semantic"], COLORS["linear"])

Spectra = Mapping[float, tuple[xr.Dataset, xr.Dataset]]
Real = Mapping[str, tuple[xr.Dataset, ...]]


def plot_structured_tokens(
    spectra: Spectra, critical: xr.Dataset, real: Real, path: str | Path | None = None
) -> Any:
    """Draw three panels, or two without runs on real tokens.

    Parameters
    ----------
    spectra : mapping
        For each exponent the theory of `dotphase.curve` and runs of `dotphase.grid`.
    critical : xarray.Dataset
        alpha_c and alpha_l over ``exponent``.
    real : mapping
        For each kind of tokens theory, runs on Gaussian tokens and runs on real ones.
    """
    panels = 3 if real else 2
    with new_figure(path, 1, panels, size=(3.7 * panels, 3.5)) as (figure, axes):
        for color, (exponent, (theory, runs)) in zip(SHADES, spectra.items(), strict=False):
            _errors(axes[0], exponent, theory, runs, color)
        add_branch_entries(axes[0])
        axes[0].set(xlabel=ALPHA, ylabel=TEST_ERROR)
        axes[0].set_ylim(0, 1.4 * axes[0].get_ylim()[1])
        use_scientific_ticks(axes[0])
        axes[0].legend(ncols=2, loc="upper right")
        _critical(axes[1], critical)
        if real:
            _tokens(axes[2], real)
    return figure


def _errors(axis: Any, exponent: float, theory: xr.Dataset, runs: xr.Dataset, color: str) -> None:
    theory = theory.sortby("alpha")
    for branch, style in LINE_STYLES.items():
        line = theory.sel(branch=branch)
        usable = line["on_branch"].astype(bool) & line["trusted"].astype(bool)
        label = rf"$i^{{-{exponent:g}}}$" if exponent else "white"
        axis.plot(
            line["alpha"], line["test_error"].where(usable), color=color, ls=style,
            label=label if branch == "semantic" else None,
        )  # fmt: skip
        values = squeeze_parameter(runs)["test_error"].sel(start=branch)
        plot_seed_means(axis, values, fmt=MARKERS[branch], ms=4.5, color=color, capsize=2)


def _critical(axis: Any, critical: xr.Dataset) -> None:
    trusted = critical["trusted"].astype(bool)
    exponents = critical["exponent"].values
    missing = exponents[~np.isfinite(critical["alpha_c"].values)]
    if missing.size:
        edge = (missing[0] + exponents[exponents < missing[0]].max(initial=0.0)) / 2
        axis.axvspan(
            edge, exponents[-1] + 0.04, color=empty_color(), lw=0, label="losses do not cross"
        )
        axis.set_xlim(exponents[0] - 0.04, exponents[-1] + 0.04)
    for name, label, color, marker in (
        ("alpha_c", r"$\alpha_c$: losses cross", ink_color(), "D"),
        ("alpha_l", r"$\alpha_l$: better than the linear layer", COLORS["linear"], "v"),
    ):
        values, error = critical[name], critical[f"{name}_stderr"]
        axis.errorbar(critical["exponent"], values, error, color=color, marker=marker, label=label)
        hollow = values.where(~trusted)
        axis.plot(critical["exponent"], hollow, marker, color=color, mfc=page_color(), zorder=3)
    axis.set(xlabel="exponent of the spectrum", ylabel=r"critical $\alpha$", ylim=(0, None))
    axis.legend(loc="lower left")


def _tokens(axis: Any, real: Real) -> None:
    """Draw test errors at the largest alpha, one group for each kind of tokens."""
    alpha = 0.0
    for position, (theory, gaussian, trained) in enumerate(real.values()):
        alpha = float(trained["alpha"].max())
        for branch in LINE_STYLES:
            color = COLORS[branch]
            level = float(theory["test_error"].sel(branch=branch).sel(alpha=alpha))
            axis.plot([position - 0.3, position + 0.3], [level, level], color=color)
            for shift, runs, fill in ((-0.12, gaussian, page_color()), (0.12, trained, color)):
                values = runs["test_error"].sel(start=branch).sel(alpha=[alpha])
                plot_seed_means(
                    axis, values, [position + shift], fmt=MARKERS[branch], ms=4.5, color=color,
                    mfc=fill, capsize=2,
                )  # fmt: skip
    for fill, label in ((page_color(), "Gaussian, same spectrum"), (ink_color(), "real tokens")):
        axis.plot([], [], "o", color=ink_color(), mfc=fill, label=label)
    axis.plot([], [], color=ink_color(), label=RS_MINIMA)
    axis.set_xticks(range(len(real)), list(real))
    axis.set_ylabel(rf"{TEST_ERROR} at $\alpha = {alpha:g}$")
    axis.set_ylim(0, 1.45 * axis.get_ylim()[1])
    use_scientific_ticks(axis)
    axis.legend(loc="upper right", ncols=2)
