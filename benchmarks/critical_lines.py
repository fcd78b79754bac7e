"""Critical lines of the paper's model over omega, replica symmetric and with symmetry breaking.

    python benchmarks/critical_lines.py --out docs/data/critical_lines.nc
    python benchmarks/critical_lines.py --omegas 0.3:0.3:1 --log2-points 13 --out few.nc

Some two minutes of CPU time for each omega.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np


def grid(text: str) -> list[float]:
    first, last, count = text.split(":")
    return np.linspace(float(first), float(last), int(count)).round(12).tolist()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--omegas", type=grid, default=grid("0:0.45:10"))
    parser.add_argument("--log2-points", type=int, default=17)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()

    from dotphase.experiments.critical_lines import critical_lines
    from dotphase.model.paper import positional_semantic
    from dotphase.storage.files import write_dataset

    def show(omega: float, found: Any, broken: Any) -> None:
        shift = "" if broken is None else f"; breaking moves it by {broken.alpha_c_shift:+.5f}"
        print(f"omega = {omega:g}: alpha_c = {found.alpha_c:.5f}{shift}", file=sys.stderr)

    found = critical_lines(
        positional_semantic, options.omegas, log2_points=options.log2_points, progress=show
    )
    print(write_dataset(found, options.out))


if __name__ == "__main__":
    main()
