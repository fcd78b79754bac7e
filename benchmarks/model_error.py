"""The estimate of the error of replica symmetry against one step of breaking, over many models.

    python benchmarks/model_error.py --out model_error.nc --plot model_error.png
    python benchmarks/model_error.py --few --out few.nc --plot few.png

Some twenty seconds of CPU time for each of the points.
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path
from typing import Any

BRANCHES = ("semantic", "positional")


def points(few: bool) -> list[dict[str, Any]]:
    """Where the theory is asked: the paper's sigma and ridge, other ones, three tokens."""
    if few:
        return [{"omega": 0.1, "alpha": 0.75, "branch": branch} for branch in BRANCHES]
    chosen: list[dict[str, Any]] = [
        {"omega": omega, "alpha": alpha, "branch": branch}
        for omega, alpha, branch in product(
            (0.0, 0.1, 0.2, 0.3, 0.4), (0.55, 0.75, 1.0, 1.5), BRANCHES
        )
    ]
    others = ({"sigma": 0.35}, {"sigma": 0.7}, {"ridge": 0.003}, {"ridge": 0.03}, {"length": 3})
    for other, (omega, alpha), branch in product(others, ((0.1, 0.7), (0.3, 1.5)), BRANCHES):
        # With three tokens the positional branch takes minutes.
        if "length" not in other or branch == "semantic":
            chosen.append({**other, "omega": omega, "alpha": alpha, "branch": branch})
    return chosen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--few", action="store_true", help="two points only")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()

    from dotphase import plot
    from dotphase.experiments.theory.model_error import model_error
    from dotphase.figures.parts.style import theme
    from dotphase.storage.files import write_dataset

    found = model_error(points(options.few), max_log2_points=17)
    write_dataset(found, options.out)
    if options.plot:
        for shade, ending in (("light", ""), ("dark", "-dark")):
            with theme(shade):
                plot.model_error(found, options.plot.with_stem(options.plot.stem + ending))


if __name__ == "__main__":
    main()
