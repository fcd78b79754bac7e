"""Single-location regression: softmax attention against linear attention and the mean of tokens.

    python benchmarks/location.py [POOLING ...]

For each student the test error of the theory at few and at many samples, that of students trained
at d = 200 on few, and the risk at infinitely many samples.
"""

from __future__ import annotations

import argparse

import numpy as np

import dotphase as dp

STRENGTH, LENGTH, RIDGE = 4.0, 3, 0.02
FEW, MANY = 4.0, 16.0
D, SEEDS = 200, 4
STARTS = {"attention": "mixed", "linear": "mixed", "mean": "semantic"}


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("poolings", nargs="*")
    risks = population()
    print("| student | theory, alpha = 4 | trained | theory, alpha = 16 | infinitely many |")
    print("|---|---|---|---|---|", flush=True)
    for pooling in parser.parse_args().poolings or STARTS:
        start = STARTS[pooling]
        model = dp.load_model(
            "single-location", pooling=pooling, strength=STRENGTH, length=LENGTH, ridge=RIDGE
        )
        few, many = (dp.solve(model, alpha, start, log2_points=12) for alpha in (FEW, MANY))
        cells = [f"{one.test_error:.3f} ± {one.stderr['test_error']:.3f}" for one in (few, many)]
        runs = dp.train(model, FEW, D, seeds=SEEDS, start=start)
        trained = f"{runs.mean['test_error']:.3f} ± {runs.stderr['test_error']:.3f}"
        shown = f"| {pooling} | {cells[0]} | {trained} | {cells[1]} | {risks[pooling]:.3f} |"
        print(shown, flush=True)


if __name__ == "__main__":
    main()
