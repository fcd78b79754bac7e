"""Normalized differences of theory and training: do the error bars have the width they should?

    python benchmarks/comparisons.py                                  # four cells, a minute
    python benchmarks/comparisons.py --cells 84 --d 600 --seeds 32    # 200 comparisons and more

A cell is a model, an alpha and a start. Students are trained at d and 2 d. Terms of order 1/d drop
out of ``2 x(2 d) - x(d)``, which is compared with the limit of the theory in units of the combined
standard error and the estimated effect of symmetry breaking. These units should have a standard
deviation of one, or slightly more for few data sets (Student's t). The last column has the standard
errors with teachers of random norm, over those with the fixed one.
"""

from __future__ import annotations

import argparse
from itertools import product
from typing import Any

import numpy as np

import dotphase as dp

#: Parameters of the models, and sample complexities.
MODELS: tuple[dict[str, Any], ...] = (
    {}, {"omega": 0.1}, {"omega": 0.45}, {"sigma": 0.6}, {"ridge": 0.03}, {"length": 3},
)  # fmt: skip
ALPHAS = (2.0, 1.2, 3.0, 0.8, 4.0, 1.6, 2.5)
STARTS = {"semantic": "theta", "positional": "m"}
LOSSES = ("train_loss", "test_error", "q")


def trained(cell: tuple[Any, ...], d: int, seeds: int, norm: str, seed: int) -> Any:
    """Students of a cell; None if one of them left the branch of its start or did not converge."""
    model, alpha, start = cell
    runs = dp.train(
        model, alpha, d, seeds=seeds, start=start, seed=seed, held_out=2, teacher_norm=norm
    )
    stayed = all(run.mechanism == start and run.converged for run in runs.runs)
    return runs if stayed else None


def compared(cell: tuple[Any, ...], d: int, seeds: int, seed: int) -> dict[str, Any] | None:
    """Normalized differences, and ratios of the errors, by quantity; None without a comparison."""
    model, alpha, start = cell
    solution = dp.solve(model, alpha, start, rtol=1e-3)
    if not (solution.on_branch and solution.stability.trusted):
        return None
    sizes = [trained(cell, size, seeds, "fixed", seed + size) for size in (d, 2 * d)]
    random = trained(cell, d, seeds, "random", seed + d)
    if any(runs is None for runs in (*sizes, random)):
        return None
    small, large = sizes
    units, ratios = {}, {}
    for name in (*LOSSES, STARTS[start]):
        error = np.hypot(2 * large.stderr[name], small.stderr[name])
        limit = 2 * large.mean[name] - small.mean[name] - solution.value(name)
        theory_error = np.hypot(solution.stderr[name], solution.model_error.get(name, 0.0))
        units[name] = limit / np.hypot(error, theory_error)
        ratios[name] = random.stderr[name] / small.stderr[name]
    return {"units": units, "ratios": ratios}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=int, default=4)
    parser.add_argument("--d", type=int, default=150)
    parser.add_argument("--seeds", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    cells = list(product(ALPHAS, MODELS, STARTS))[: options.cells]
    table: dict[str, list[tuple[float, float]]] = {}
    for number, (alpha, parameters, start) in enumerate(cells):
        cell = (dp.positional_semantic(**parameters), alpha, start)
        result = compared(cell, options.d, options.seeds, options.seed + 10**6 * number)
        values = "no comparison" if result is None else result["units"]
        print(f"alpha {alpha:g}, {parameters}, {start}: {values}", flush=True)
        for name in result["units"] if result else ():
            table.setdefault(name, []).append((result["units"][name], result["ratios"][name]))
    table["all"] = [row for rows in list(table.values()) for row in rows]
    print(
        f"\n{'quantity':12} {'count':>5} {'mean':>6} {'width':>6} {'>2':>4} {'>3':>4} {'ratio':>6}"
    )
    for name, rows in table.items():
        units, ratios = np.array(rows).T
        beyond = [int(np.sum(np.abs(units) > limit)) for limit in (2, 3)]
        print(
            f"{name:12} {len(units):5d} {units.mean():6.2f} {np.sqrt(np.mean(units**2)):6.2f} "
            f"{beyond[0]:4d} {beyond[1]:4d} {np.median(ratios):6.2f}"
        )


if __name__ == "__main__":
    main()
