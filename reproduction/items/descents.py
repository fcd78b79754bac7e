"""Ends of gradient descent, random starts at large d, momentum and mini-batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from dotphase import basins, dynamics, plot, positional_semantic, train
from dotphase.analysis import basin_shares, mean_and_error, outcomes
from dotphase.plot.style import SYMBOLS
from reproduction.figures.descent_limits import plot_descent_limits
from reproduction.figures.optimizers import plot_optimizers
from reproduction.item import Datasets, Item
from reproduction.rows import OVERLAP, finite_size, number, over_seeds
from reproduction.store import RANDOM_NORM, Parts
from reproduction.sweeps import DESCENT, descended, theory_curve, training_grid
from reproduction.verdict import Row, between_engines

OMEGA = 0.3
#: Models of the columns, besides the paper's.
SLICES: dict[str, dict[str, float]] = {
    "sigma-0.3": {"sigma": 0.3},
    "sigma-0.7": {"sigma": 0.7},
    "ridge-0.1": {"ridge": 0.1},
    "ridge-0.001": {"ridge": 0.001},
}
#: Smaller steps for models with a large curvature, which is of order sigma^4.
RULE_OF = {"sigma-0.7": {"lr": 1.0}}
#: Compared rules by name: label, and changes from plain gradient descent.
RULES: dict[str, tuple[str, dict[str, float]]] = {
    "plain": ("gradient descent", {}),
    "momentum": ("momentum .8", {"momentum": 0.8}),
    "half": ("mini-batches, n/2", {"batch_fraction": 0.5}),
    "tenth": ("mini-batches, n/10", {"batch_fraction": 0.1}),
}


def compute(parts: Parts, sizes: Mapping[str, Any]) -> Datasets:
    """Ends of descents with minima and students, outcomes of random starts, and rules."""
    results: Datasets = {}
    members = {name: SLICES[name] for name in sizes["slices"]}
    members |= {f"length-{length}": {"length": length} for length in sizes["lengths"]}
    for name, changes in members.items():
        alphas = sizes["lengths"][changes["length"]] if "length" in changes else sizes["alphas"]
        model = positional_semantic(OMEGA, **changes)  # type: ignore[arg-type]
        results[f"minima-{name}"] = theory_curve(
            parts, f"minima-{name}", model, {**sizes["minima"], "alphas": alphas}
        )
        rule = DESCENT | RULE_OF.get(name, {})
        results[f"ends-{name}"] = descended(parts, f"ends-{name}", model, alphas, sizes, rule)
        results[f"runs-{name}"] = training_grid(
            parts, f"runs-{name}", sizes, alphas, [OMEGA], rule, **changes
        )
    model = positional_semantic(OMEGA)
    config = {"alphas": sizes["basins"][0], "scales": sizes["scales"], "seeds": sizes["basins"][1]}
    results["random-trained"] = parts.call(
        "random-trained", basins, model, d=100, optimizers=["gd"], **config, **RANDOM_NORM
    )
    for d, (alphas, draws) in sizes["random"].items():
        config = {"alphas": alphas, "scales": sizes["scales"], "d": d, "seeds": draws}
        config |= sizes.get("random_rule", {})
        results[f"random-{d}"] = parts.call(f"random-{d}", outcomes, model, **config, **RANDOM_NORM)
    for name, (_, changes) in RULES.items():
        rule = {**sizes["rule"], **changes}
        config = {"log2_ensemble": sizes["log2_ensemble"], **rule}
        results[f"path-{name}"] = parts.call(f"path-{name}", _path, **config)
        config = {"d": sizes["d"], "seeds": sizes["seeds"], **rule}
        results[f"trained-{name}"] = parts.call(f"trained-{name}", _trained, **config)
    return results


def _path(log2_ensemble: int, **rule: Any) -> xr.Dataset:
    """Gradient descent from the semantic start in the limit of large d."""
    size: dict[str, Any] = {"log2_ensemble": log2_ensemble, "repetitions": 4, "rtol": None}
    path = dynamics(positional_semantic(OMEGA), start="semantic", **size, **rule).dataset()
    return path.drop_vars([name for name in path if str(name).endswith("_samples")])


def _trained(
    d: int,
    seeds: int,
    alpha: float,
    momentum: float = 0.0,
    batch_fraction: float = 1.0,
    **rule: Any,
) -> xr.Dataset:
    """Train from the semantic start at finite d."""
    optimizer = "sgd" if batch_fraction < 1 else "momentum" if momentum else "gd"
    rule |= {"momentum": momentum} if momentum else {}
    rule |= {"minibatch": round(batch_fraction * round(alpha * d))} if batch_fraction < 1 else {}
    config: dict[str, Any]
    config = {"alpha": alpha, "d": d, "seeds": seeds, "start": "semantic", "optimizer": optimizer}
    path = train(positional_semantic(OMEGA), **config, **rule, **RANDOM_NORM, record=True).path
    assert path is not None
    return path


def draw(datasets: Datasets) -> dict[str, Any]:
    """Draw ends of descents, outcomes of random starts, and rules."""
    columns: dict[str, list[Any]] = {}
    for name in _members(datasets):
        parameter, value = name.split("-")
        title = {"length": "tokens $L$"}.get(parameter, f"${SYMBOLS.get(parameter)}$")
        label = f"{title[:-1]} = {value}$"
        members = (datasets[f"{kind}-{name}"] for kind in ("minima", "ends", "runs"))
        columns.setdefault(title, []).append((label, *members))
    random = {
        f"training, $d = {results.attrs['d']}$" if name == "random-trained"
        else f"dynamics, $d = 10^{round(np.log10(results.attrs['d']))}$": results
        for name, results in datasets.items()
        if name.startswith("random-")
    }  # fmt: skip
    rules = {
        label: (datasets[f"path-{name}"], datasets[f"trained-{name}"])
        for name, (label, _) in RULES.items()
    }
    return {
        "": plot_descent_limits(columns),
        "random": plot.outcomes(random),
        "rules": plot_optimizers(rules),
    }


def _members(datasets: Datasets) -> list[str]:
    return [name.removeprefix("ends-") for name in datasets if name.startswith("ends-")]


def compare(datasets: Datasets) -> list[Row]:
    """Compare overlaps after descent, and the ends of the rules, in theory and training.

    Only students that kept the mechanism of their start count. At finite d the other overlap grows
    from 1/sqrt d, and wins in time if the start is unstable.
    """
    rows = []
    for name in _members(datasets):
        ends, runs = datasets[f"ends-{name}"], datasets[f"runs-{name}"].isel(omega=0)
        for start, overlap in OVERLAP.items():
            for alpha in (ends["alpha"].values.min(), ends["alpha"].values.max()):
                end = ends.sel(branch=start, alpha=alpha)
                students = runs.sel(start=start, alpha=alpha)
                stayed = np.flatnonzero(students["mechanism"].values == start)
                if stayed.size < 2 or float(end[overlap]) < LEAST:
                    continue
                at = {"model": name, "start": start, "alpha": float(alpha), "runs": stayed.size}
                pair = number(end, overlap), over_seeds(students[overlap].isel(seed=stayed))
                judged: dict[str, Any] = {"share": finite_size(runs), "seeds": stayed.size}
                rows.append(between_engines(overlap, at, *pair, "dynamics", **judged))
    for name, (label, _) in RULES.items():
        theory, runs = datasets[f"path-{name}"].isel(step=-1), datasets[f"trained-{name}"]
        ours = over_seeds(runs["theta"].isel(step=-1))
        at = {"rule": label, "step": int(theory["step"])}
        pair = number(theory, "theta"), ours
        judged = {"share": finite_size(runs), "seeds": runs.sizes["seed"]}
        rows.append(between_engines("theta", at, *pair, "dynamics", **judged))
    return rows


def remarks(datasets: Datasets) -> list[str]:
    """Shares of the outcomes, and the number of steps of the rules."""
    lines = []
    for name, results in datasets.items():
        if not name.startswith("random-"):
            continue
        shares = basin_shares(results.isel(optimizer=0) if "optimizer" in results.dims else results)
        for scale in shares["scale"].values:
            semantic = shares.sel(mechanism="semantic", scale=scale)
            values = "; ".join(
                f"{float(alpha):g}: {100 * float(semantic['share'].sel(alpha=alpha)):.0f} ± "
                f"{100 * float(semantic['stderr'].sel(alpha=alpha)):.0f}%"
                for alpha in semantic["alpha"]
            )
            kind = "training" if name == "random-trained" else "dynamics"
            lines.append(
                f"Random starts of scale {scale:g} that end semantic at d = {results.attrs['d']} "
                f"({kind}), by alpha: {values}."
            )
    for name, (label, _) in RULES.items():
        (theory, runs) = datasets[f"path-{name}"], datasets[f"trained-{name}"]
        loss = theory["train_loss"].values
        late = np.flatnonzero(loss > 1.05 * loss.min())
        after = int(theory["step"].values[late[-1]]) + 1 if late.size else 0
        trained = mean_and_error(runs["train_loss"].isel(step=-1))
        lines.append(
            f"{label}: within 5% of its lowest loss from step {after} on; at the end the loss is "
            f"{float(loss[-1]):.6f} ± {float(theory['train_loss_stderr'][-1]):.6f} and "
            f"{float(trained[0]):.6f} ± {float(trained[1]):.6f} trained."
        )
    return lines


#: Overlaps below this are not compared: they are of the order of chance.
LEAST = 0.02

#: Sample complexities of the longer sentences.
LENGTHS = {
    3: [0.3, 0.6, 1.0, 1.4],
    4: [0.3, 0.6, 1.0],
    5: [0.3, 0.6, 1.0],
    6: [0.3, 0.6, 1.0],
}

#: Sample complexities of the random starts.
RANDOM = [1.0, 2.0, 3.0, 4.0, 6.0]

SIZES = {
    "quick": {
        "slices": ["sigma-0.3"], "lengths": {3: [0.5, 1.0]}, "alphas": [0.5, 1.5],
        "minima": {"log2_points": 12}, "log2_ensemble": 10, "d": 200, "seeds": 4,
        "scales": [1.0], "basins": ([2.0, 6.0], 4), "random": {1000: ([2.0, 6.0], 3)},
        "rule": {"alpha": 1.0, "lr": 4.0, "steps": 60},
    },
    "full": {
        "slices": list(SLICES), "lengths": LENGTHS, "alphas": [0.3, 0.6, 1.0, 1.5, 2.0],
        "minima": {"log2_points": 13}, "log2_ensemble": 11, "d": 500, "seeds": 8,
        "scales": [0.01, 1.0], "basins": (RANDOM, 24), "random": {
            10**3: (RANDOM, 24), 10**4: (RANDOM, 16), 10**5: (RANDOM[1::2] + RANDOM[-1:], 12),
            10**6: (RANDOM[1:2] + RANDOM[-1:], 6),
        },
        "rule": {"alpha": 1.0, "lr": 4.0, "steps": 127},
    },
}  # fmt: skip
ITEM = Item("Ends of gradient descent", compute, draw, compare, SIZES, remarks)
