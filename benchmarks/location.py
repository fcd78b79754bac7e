"""Single-location regression: softmax attention against linear attention and the mean of tokens.

    python benchmarks/location.py [--draw]

Theory along alpha and students trained at d = 200, with the risks at infinitely many samples;
results go to docs/data/location.nc, and docs/images/location.png is drawn of them.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import xarray as xr

import dotphase as dp
from dotphase.figures.parts.style import COLOURS, drawing

DOCS = Path(__file__).resolve().parents[1] / "docs"
STRENGTH, LENGTH, RIDGE = 4.0, 3, 0.02
ALPHAS, TRAINED = [1.0, 4.0, 16.0, 48.0], [4.0]
D, SEEDS = 200, 4
STARTS = {"attention": "mixed", "linear": "mixed", "mean": "semantic"}
SHOWN = {"attention": "semantic", "linear": "positional", "mean": "uninformed"}


def population(seed: int = 0, count: int = 2**20) -> dict[str, float]:
    """Risks when teacher and mark are known: E sum_l (1[l = s] - w_l)^2 of the best weights.

    Softmax of ``sqrt(strength) k.x`` is the posterior of the place, hence the Bayes risk. Weights
    ``c k.x`` have L/(strength + L) at best, equal weights 1 - 1/L.
    """
    field = np.random.default_rng(seed).standard_normal((count, LENGTH))
    field[:, 0] += np.sqrt(STRENGTH)
    weight = np.exp(np.sqrt(STRENGTH) * field)
    weight /= weight.sum(axis=1, keepdims=True)
    weight[:, 0] -= 1
    bayes = float(np.mean(np.sum(weight**2, axis=1)))
    return {"attention": bayes, "linear": LENGTH / (STRENGTH + LENGTH), "mean": 1 - 1 / LENGTH}


def compute() -> xr.Dataset:
    """Theory and training of the three students."""
    shape = (len(STARTS), len(ALPHAS))
    theory, error, trained, spread = (np.full(shape, np.nan) for _ in range(4))
    trusted = np.zeros(shape, int)
    for i, (pooling, start) in enumerate(STARTS.items()):
        model = dp.load_model(
            "single-location", pooling=pooling, strength=STRENGTH, length=LENGTH, ridge=RIDGE
        )
        for j, alpha in enumerate(ALPHAS):
            found = dp.solve(model, alpha, start, log2_points=12)
            if found.converged:
                theory[i, j], error[i, j] = found.test_error, found.stderr["test_error"]
                trusted[i, j] = found.stability.trusted
            if alpha in TRAINED:
                runs = dp.train(model, alpha, D, seeds=SEEDS, start=start)
                trained[i, j] = runs.mean["test_error"]
                spread[i, j] = runs.stderr["test_error"]
            print(
                pooling, alpha, theory[i, j], error[i, j], trained[i, j], spread[i, j], flush=True
            )
    dims = ("pooling", "alpha")
    names = {"theory": theory, "theory_stderr": error, "trained": trained, "trained_stderr": spread,
             "trusted": trusted}  # fmt: skip
    risks = population()
    return xr.Dataset(
        {name: (dims, values) for name, values in names.items()}
        | {"population": ("pooling", [risks[name] for name in STARTS])},
        {"pooling": list(STARTS), "alpha": ALPHAS},
    )


def draw(found: xr.Dataset) -> None:
    """Test errors against alpha; lines are theory, markers training, dotted the limits."""
    with drawing(DOCS / "images" / "location.png", size=(4.6, 3.2)) as (_, axis):
        for pooling in found["pooling"].values.tolist():
            part, colour = found.sel(pooling=pooling), COLOURS[SHOWN[pooling]]
            axis.plot(part["alpha"], part["theory"], color=colour, label=pooling)
            axis.errorbar(part["alpha"], part["trained"], 2 * part["trained_stderr"], fmt="o",
                          color=colour)  # fmt: skip
            axis.axhline(float(part["population"]), color=colour, ls=":", lw=1)
        axis.set(xscale="log", xlabel=r"$\alpha$", ylabel="test error", ylim=(0, 1.6))
        axis.legend()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draw", action="store_true")
    path = DOCS / "data" / "location.nc"
    if not parser.parse_args().draw:
        compute().to_netcdf(path)
    draw(xr.load_dataset(path))


if __name__ == "__main__":
    main()
