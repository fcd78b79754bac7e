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

#: Lines and what they are.
LINES = {
    "alpha_c": "training losses of the semantic and the positional minimum cross",
    "alpha_l": "test error of the lowest minimum passes that of the linear layer",
}
#: What there is of each line, by the ending of its name.
ENDINGS = {
    "": "replica symmetric",
    "_stderr": "its standard error, of the points",
    "_shift": "what one step of replica symmetry breaking changes",
    "_shift_stderr": "standard error of that change",
    "_broken": "with one step of replica symmetry breaking",
    "_broken_stderr": "its standard error, of the points and of the change",
}


def grid(text: str) -> list[float]:
    first, last, count = text.split(":")
    return np.linspace(float(first), float(last), int(count)).round(12).tolist()


def numbers(line: str, found: Any, broken: Any) -> list[float]:
    """In the order of `ENDINGS`, NaN where nothing was found."""
    plain = [getattr(found, line), getattr(found, f"{line}_stderr")]
    if broken is None:
        return [*plain, *[np.nan] * 4]
    shift = [getattr(broken, f"{line}_shift"), getattr(broken, f"{line}_shift_stderr")]
    return [*plain, *shift, plain[0] + shift[0], float(np.hypot(plain[1], shift[1]))]


def message(found: Any, broken: Any) -> str:
    """Why something is missing; the doubts of the replica-symmetric theory otherwise."""
    names = {"semantic": "semantic", "positional": "positional", "linear": "semantic at alpha_l"}
    parts = {} if broken is None else {told: getattr(broken, n) for n, told in names.items()}
    lost = [f"{name}: {part.message}" for name, part in parts.items() if not part.on_branch]
    return "; ".join(lost) or found.message


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--omegas", type=grid, default=grid("0:0.45:10"))
    parser.add_argument("--log2-points", type=int, default=17)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()

    import xarray as xr

    import dotphase as dp
    from dotphase.storage.files import write_dataset
    from dotphase.storage.provenance import provenance

    rows: list[tuple[Any, Any]] = []
    for omega in options.omegas:
        model = dp.positional_semantic(omega)
        found = dp.critical(model, limits=False, log2_points=options.log2_points)
        broken = dp.analysis.broken_critical(model, found) if found.crosses else None
        shift = "" if broken is None else f"; breaking moves it by {broken.alpha_c_shift:+.5f}"
        print(f"omega = {omega:g}: alpha_c = {found.alpha_c:.5f}{shift}", file=sys.stderr)
        rows.append((found, broken))
    asked = {"parameter": "omega", "log2_points": options.log2_points}
    first = dp.positional_semantic(options.omegas[0])
    dataset = xr.Dataset(coords={"omega": options.omegas}, attrs=provenance(first, **asked))
    for line, text in LINES.items():
        table = np.asarray([numbers(line, *row) for row in rows])
        for column, (ending, how) in zip(table.T, ENDINGS.items(), strict=True):
            dataset[line + ending] = ("omega", column, {"description": f"{text}: {how}"})
    dataset["trusted"] = ("omega", [found.trusted for found, _ in rows])
    dataset["message"] = ("omega", [message(*row) for row in rows])
    print(write_dataset(dataset, options.out))


if __name__ == "__main__":
    main()
