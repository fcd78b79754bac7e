"""Tokens that are not white: power-law spectra, and embeddings of a real vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from dotphase.experiments.curve import curve
from dotphase.experiments.grid import grid
from dotphase.experiments.real_tokens import train_on_table
from dotphase.figures.structured import plot_structured
from dotphase.finite.embeddings import (
    KINDS,
    PACKAGE,
    Tokens,
    gaussian_like,
    installed_table,
    prepare,
)
from dotphase.model import Model
from dotphase.model.paper import positional_semantic
from dotphase.model.spectrum import power_law
from dotphase.report.item import Datasets, Item
from dotphase.report.store import Parts
from dotphase.report.sweeps import mean_and_error
from dotphase.report.verdict import Row, between_engines
from dotphase.theory.critical import critical_line

OMEGA = 0.3
#: Exponents that are trained, and different eigenvalues of a spectrum.
EXPONENTS, ATOMS = (0.0, 0.5, 1.0), 32
#: Quantities compared, the overlap being that of the branch.
OVERLAP = {"semantic": "theta", "positional": "m"}


def _model(exponent: float, omega: float = OMEGA) -> Model:
    return positional_semantic(omega=omega, spectrum=power_law(exponent, ATOMS))


def compute(parts: Parts, sizes: Mapping[str, Any]) -> Datasets:
    """Runs and theory for each spectrum, alpha_c against the exponent, and real tokens."""
    found: Datasets = {}
    asked = {"alphas": sizes["trained"], "omegas": [OMEGA], "d": sizes["d"]}
    asked |= {"seeds": sizes["seeds"]}
    for exponent in EXPONENTS:
        shape = {"exponent": exponent, "atoms": ATOMS}
        train = partial(
            grid, partial(_model, exponent), sizes["trained"], [OMEGA], sizes["d"],
            seeds=sizes["seeds"],
        )  # fmt: skip
        found[f"runs-{exponent:g}"] = parts.get(f"runs-{exponent:g}", asked | shape, train)
    found |= _tokens(parts, sizes)
    for exponent in EXPONENTS:
        found[f"theory-{exponent:g}"] = _branches(
            parts, f"theory-{exponent:g}", _model(exponent), sizes["alphas"], sizes
        )
    wanted = {
        "exponents": sizes["exponents"],
        "log2_points": sizes["critical_points"],
        "atoms": ATOMS,
    }
    found["theory-critical"] = parts.get("theory-critical", wanted, partial(_critical, wanted))
    return found


def _branches(
    parts: Parts, name: str, model: Model, alphas: Sequence[float], sizes: Mapping[str, Any]
) -> xr.Dataset:
    asked = {"alphas": alphas, "rtol": sizes["rtol"], "most": sizes["most"]}
    return parts.get(name, asked, partial(curve, model, **asked))


def _critical(asked: Mapping[str, Any]) -> xr.Dataset:
    """Critical points along the exponents, the mean variance of the tokens kept."""
    points = critical_line(_model, asked["exponents"], log2_points=asked["log2_points"])
    names = ("alpha_c", "alpha_c_stderr", "alpha_l", "alpha_l_stderr", "trusted")
    values: dict[str, Any] = {
        name: ("exponent", [float(getattr(one, name)) for one in points]) for name in names
    }
    values["message"] = ("exponent", [one.message for one in points])
    return xr.Dataset(values, coords={"exponent": asked["exponents"]})


def _tokens(parts: Parts, sizes: Mapping[str, Any]) -> Datasets:
    """Runs on rows of a table of embeddings, on Gaussian ones of the same spectrum, theory."""
    table = installed_table() if sizes["token_seeds"] else None
    if table is None:
        return {}
    found: Datasets = {}
    alphas, seeds = sizes["token_alphas"], sizes["token_seeds"]
    asked = {"alphas": alphas, "seeds": seeds, "rows": len(table), "omega": OMEGA}
    for kind in KINDS:
        real = prepare(table, kind)
        for name, make in (("real", lambda some: some), ("like", gaussian_like)):
            train = partial(_train, make, real, alphas, seeds)
            found[f"runs-{name}-{kind}"] = parts.get(f"runs-{name}-{kind}", asked, train)
    for kind in KINDS:
        model = positional_semantic(omega=OMEGA, spectrum=prepare(table, kind).spectrum)
        name = f"theory-real-{kind}"
        found[name] = _branches(parts, name, model, alphas, sizes)
    return found


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
    return plot_structured(spectra, datasets["theory-critical"], real)


def compare(datasets: Datasets) -> list[Row]:
    """Training against theory for every spectrum, where the theory is trusted."""
    rows = []
    for exponent in EXPONENTS:
        theory, runs = datasets[f"theory-{exponent:g}"], datasets[f"runs-{exponent:g}"]
        trained = runs.isel(omega=0)
        share = 0.01 + 10 / float(runs.attrs["d"])
        rows += _compare(theory, trained, {"exponent": exponent}, share, "training")
    for kind in KINDS:
        if f"runs-real-{kind}" in datasets:
            rows += _universality(
                datasets[f"runs-like-{kind}"], datasets[f"runs-real-{kind}"], kind
            )
    return rows


def _compare(
    theory: xr.Dataset, runs: xr.Dataset, at: dict[str, Any], share: float, name: str
) -> list[Row]:
    rows = []
    for branch, overlap in OVERLAP.items():
        for alpha in runs["alpha"].values:
            point = theory.sel(branch=branch).sel(alpha=alpha)
            if not (bool(point["trusted"]) and bool(point["on_branch"])):
                continue
            for quantity in ("train_loss", "test_error", overlap):
                mean, error = mean_and_error(runs[quantity].sel(start=branch, alpha=alpha))
                rows.append(
                    between_engines(
                        quantity,
                        at | {"branch": branch, "alpha": float(alpha)},
                        (float(point[quantity]), float(point[f"{quantity}_stderr"])),
                        (float(mean), float(error)),
                        ("theory", name),
                        share=share,
                    )
                )
    return rows


def _universality(like: xr.Dataset, real: xr.Dataset, kind: str) -> list[Row]:
    """Real tokens against Gaussian ones with the same spectrum and the same teachers."""
    rows = []
    for branch, overlap in OVERLAP.items():
        for alpha in real["alpha"].values:
            for quantity in ("train_loss", "test_error", overlap):
                pair = [some[quantity].sel(start=branch, alpha=alpha) for some in (like, real)]
                # The teacher is the same in both: its fluctuations drop out of the difference.
                gap, error = mean_and_error(pair[1] - pair[0])
                mean = float(pair[0].mean("seed"))
                rows.append(
                    between_engines(
                        quantity,
                        {"tokens": kind, "branch": branch, "alpha": float(alpha)},
                        (mean, 0.0),
                        (mean + float(gap), float(error)),
                        ("Gaussian tokens", "real tokens"),
                        share=0.0,
                    )
                )
    return rows


def remarks(datasets: Datasets) -> list[str]:
    """Critical points against the exponent, and how real tokens differ from Gaussian ones."""
    lines = []
    critical = datasets["theory-critical"]
    for exponent in critical["exponent"].values:
        point = critical.sel(exponent=exponent)
        numbers = [
            f"{name} = {float(point[name]):.4f} ± {float(point[f'{name}_stderr']):.4f}"
            for name in ("alpha_c", "alpha_l")
            if np.isfinite(float(point[name]))
        ]
        said = str(point["message"].values)
        lines.append(f"Exponent {float(exponent):g}: " + "; ".join([*numbers, said]) + ".")
    if "runs-real-raw" not in datasets:
        lines.append(
            f"Real tokens were left out: the package {PACKAGE} is not installed, or the size asks "
            "for none."
        )
        return lines
    for kind in KINDS:
        real, like = datasets[f"runs-real-{kind}"], datasets[f"runs-like-{kind}"]
        for branch in OVERLAP:
            texts = []
            for quantity in ("train_loss", "test_error"):
                first, second = (some[quantity].sel(start=branch) for some in (like, real))
                ratio = (second - first).mean("alpha") / first.mean(("alpha", "seed"))
                mean, error = mean_and_error(ratio)
                texts.append(f"{quantity} {100 * float(mean):+.1f} ± {100 * float(error):.1f}%")
            lines.append(
                f"Real tokens ({kind}) minus Gaussian ones of the same spectrum and teachers, "
                f"{branch} start: " + ", ".join(texts)
            )
    return lines


ITEM = Item(
    title="Tokens that are not white",
    compute=compute,
    draw=draw,
    compare=compare,
    remarks=remarks,
    sizes={
        "quick": {
            "alphas": [1.0, 1.5, 2.0], "rtol": 1e-2, "most": 12, "d": 192, "seeds": 4,
            "trained": [1.5, 2.0], "exponents": [0.0, 0.5, 1.0], "critical_points": 12,
            "token_seeds": 0, "token_alphas": [2.0],
        },
        "full": {
            "alphas": np.round(np.linspace(0.8, 2.5, 18), 4).tolist(), "rtol": 5e-3, "most": 15,
            "d": 768, "seeds": 16, "trained": [1.0, 1.5, 2.0],
            "exponents": [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8], "critical_points": 15,
            "token_seeds": 16, "token_alphas": [1.5, 2.5],
        },
    },
)  # fmt: skip
