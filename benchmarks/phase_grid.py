"""The paper's phase diagram by training, in one command, with its throughput.

    python benchmarks/phase_grid.py --out grid.npz
    python benchmarks/phase_grid.py --seeds 2 --omegas 0:1:25 --out quick.npz
    python benchmarks/phase_grid.py --d 40 --alphas 0.5:2:2 --omegas 0:1:2 --seeds 1 --out small.npz

25 alpha up to 2, 25 omega, both starts, 24 data sets, d = 1000: 30,000 trainings. Meant for a GPU;
a small grid runs anywhere. Cells are kept in the .npz file, and a run that was stopped goes on
from there. Beside it are written how fast it was (.json) and means over data sets (.nc).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
import xarray as xr

from dotphase.runtime.progress import ProgressEvent

#: Attributes that say with what and when a dataset was computed.
VERSIONS = ("software", "started", "python", "jax", "numpy")


def grid(text: str) -> list[float]:
    first, last, count = text.split(":")
    return np.linspace(float(first), float(last), int(count)).tolist()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--d", type=int, default=1000)
    parser.add_argument("--alphas", type=grid, default=grid("0.08:2:25"))
    parser.add_argument("--omegas", type=grid, default=grid("0:0.5:25"))
    parser.add_argument("--seeds", type=int, default=24)
    parser.add_argument("--runs-per-batch", type=int, default=None, help="cells trained at once")
    parser.add_argument("--out", type=Path, default=Path("grid.npz"))
    options = parser.parse_args()

    from dotphase.errors import InvalidInput
    from dotphase.experiments.training.averages import means_over_seeds
    from dotphase.experiments.training.grid import grid as train_grid
    from dotphase.model.paper import positional_semantic
    from dotphase.storage.files import write_dataset, write_text

    began, shown = time.perf_counter(), [0.0]

    def show(event: ProgressEvent) -> None:
        now = time.perf_counter() - began
        if now - shown[0] > 1 or event.done == event.total:
            shown[0] = now
            print(f"{now:8.1f} s  {event.done} of {event.total} cells", file=sys.stderr)

    try:
        dataset = train_grid(
            lambda omega: positional_semantic(omega=omega),
            options.alphas, options.omegas, options.d, seeds=options.seeds,
            runs_per_batch=options.runs_per_batch, out=options.out, throughput=True, progress=show,
        )  # fmt: skip
    except InvalidInput as error:
        print(f"phase_grid: {error}", file=sys.stderr)
        return 2
    kept = options.out.with_suffix(".json")
    if dataset.attrs["runs"] == 0 and kept.exists():
        # All cells were found in the file: how fast they were is known from then.
        measured = json.loads(kept.read_text(encoding="utf-8"))
    else:
        measured = figures(dataset)
        write_text(json.dumps(measured, indent=2) + "\n", kept)
    report(measured)
    means = means_over_seeds(dataset)
    # Versions are those of the run that trained, which need not be this one.
    means.attrs = {name: value for name, value in means.attrs.items() if name not in VERSIONS}
    means = means.assign_attrs(measured)
    print(f"written               {write_dataset(means, options.out.with_suffix('.nc'))}")
    return 0


def figures(dataset: xr.Dataset) -> dict[str, Any]:
    """Size of the grid and how fast it was."""
    attrs = dataset.attrs
    runs, seconds = int(attrs["runs"]), float(attrs["seconds"])
    return {
        "device": jax.devices()[0].device_kind,
        **{name: attrs[name] for name in VERSIONS},
        "d": int(attrs["d"]),
        **{f"{name}s": dataset.sizes[name] for name in ("alpha", "omega", "seed", "start")},
        "runs": runs,
        "seconds": seconds,
        "runs_per_second": runs / seconds,
        "converged_share": float(dataset["converged"].mean()),
        "mean_steps": float(dataset["iterations"].mean()),
        "useful_bytes": float(attrs["useful_bytes"]),
        "useful_bandwidth": float(attrs["useful_bytes"]) / seconds,
        "evaluations_per_second": float(attrs["evaluations_per_second"]),
        "evaluation_bandwidth": float(attrs["evaluation_bandwidth"]),
        "copy_bandwidth": float(attrs["copy_bandwidth"]),
    }


def report(measured: dict[str, Any]) -> None:
    print(f"device                {measured['device']}")
    print(f"runs                  {measured['runs']} in {measured['seconds']:.1f} s, "
          f"compilation included: {measured['runs_per_second']:.1f} a second")  # fmt: skip
    print(f"converged             {100 * measured['converged_share']:.2f}% of all runs")
    print(f"steps per run         {measured['mean_steps']:.1f}")
    useful, copy = measured["useful_bandwidth"], measured["copy_bandwidth"]
    alone = measured["evaluation_bandwidth"]
    print(f"useful bandwidth      {useful / 1e9:.1f} GB/s over the whole command")
    print(f"gradient alone        {measured['evaluations_per_second']:.0f} per second, "
          f"{alone / 1e9:.1f} GB/s of tokens")  # fmt: skip
    print(f"plain copy            {copy / 1e9:.1f} GB/s; the gradient reads at {alone / copy:.2f} "
          f"of it, the command at {useful / copy:.3f}")  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
