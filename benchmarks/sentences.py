"""Long sentences: theory beside trained students, and what a solve costs, up to 16 tokens.

    python benchmarks/sentences.py OUT.json [--tokens 2 4 8 12 16] [--ranks 1 2] [--d 1000]

One row for each number of tokens and rank of the student: a branch at `ALPHA` (the semantic one, or
--branch mixed), students trained from the start of that name, theory at the same d, the seconds of
a first and of a second solve and those of one evaluation at a fixed number of points.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import dotphase as dp

ALPHA = 1.5
QUANTITIES = ("train_loss", "test_error", "theta", "m")
#: log2 of the points at which costs are compared.
FIXED = 14


def solved(model: dp.Model, alpha: float, branch: str, **changes: Any) -> tuple[dp.Solution, float]:
    """A solution, and how long it took."""
    begin = time.perf_counter()
    solution = dp.solve(model, alpha, branch, **changes)
    return solution, time.perf_counter() - begin


def row(length: int, rank: int, branch: str, d: int, seeds: int, seed: int) -> dict[str, Any]:
    """Theory, training and times for one number of tokens and one rank."""
    model = dp.positional_semantic_length(length).replace(student_rank=rank)
    _, first = solved(model, 1.01 * ALPHA, branch, log2_points=FIXED)
    _, fixed = solved(model, ALPHA, branch, log2_points=FIXED)
    solution, default = solved(model, ALPHA, branch)
    begin = time.perf_counter()
    both = dp.compare(model, [ALPHA], d, seeds=seeds, branches=[branch], seed=seed)
    found = {
        name: {
            source: [float(both[f"{name}{what}"].sel(source=source).squeeze())
                     for what in ("", "_stderr")]
            for source in ("theory", "training")
        }
        for name in QUANTITIES
    }  # fmt: skip
    return {
        "tokens": length, "rank": rank, "branch": branch, "alpha": ALPHA,
        "d": d, "seeds": seeds, "seed": seed,
        "first_seconds": first, "fixed_seconds": fixed, "default_seconds": default,
        "log2_points": solution.log2_points, "found": solution.found,
        "kind": solution.stability.described, "trusted": solution.stability.trusted,
        "verdict": str(both["verdict"].squeeze().values),
        "score": float(both["score"].squeeze()), "worst": str(both["worst"].squeeze().values),
        "compare_seconds": time.perf_counter() - begin, **found,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--tokens", type=int, nargs="+", default=[2, 3, 4, 6, 8, 12, 16])
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--d", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--branch", default="semantic")
    given = parser.parse_args()
    rows = []
    for rank in given.ranks:
        for length in given.tokens:
            rows.append(row(length, rank, given.branch, given.d, given.seeds, given.seed))
            print(json.dumps(rows[-1]), flush=True)
            given.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
