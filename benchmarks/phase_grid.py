"""The paper's phase-diagram experiment in one command, with its throughput.

    python benchmarks/phase_grid.py --out grid.npz
    python benchmarks/phase_grid.py --d 40 --alphas 0.5:2:2 --omegas 0:1:2 --seeds 1 --out small.npz

25 alpha up to 2, 25 omega, both starts, two seeds, d = 1000. Meant for a GPU; a small grid runs
anywhere. Cells are kept in the .npz file after every batch, and a run that was stopped goes on
from there. At the end a labelled netCDF file is written beside it.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import jax
import numpy as np


def grid(text: str) -> list[float]:
    first, last, count = text.split(":")
    return np.linspace(float(first), float(last), int(count)).tolist()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--d", type=int, default=1000)
    parser.add_argument("--alphas", type=grid, default=grid("0.08:2:25"))
    parser.add_argument("--omegas", type=grid, default=grid("0:1:25"))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--batch", type=int, default=None, help="cells trained at once")
    parser.add_argument("--out", type=Path, default=Path("grid.npz"))
    options = parser.parse_args()

    from dotphase.errors import InvalidInput
    from dotphase.experiments.grid import grid as train_grid
    from dotphase.model.paper import positional_semantic
    from dotphase.storage.files import write_dataset

    began = time.perf_counter()

    def show(done: int, total: int) -> None:
        print(f"{time.perf_counter() - began:8.1f} s  {done} of {total} cells", file=sys.stderr)

    try:
        dataset = train_grid(
            lambda omega: positional_semantic(omega=omega),
            options.alphas, options.omegas, options.d, seeds=options.seeds, batch=options.batch,
            out=options.out, throughput=True, progress=show,
        )  # fmt: skip
    except InvalidInput as error:
        print(f"phase_grid: {error}", file=sys.stderr)
        return 2
    target = write_dataset(dataset, options.out.with_suffix(".nc"))
    report(dataset, str(target))
    return 0


def report(dataset, target: str) -> None:  # type: ignore[no-untyped-def]
    attrs = dataset.attrs
    runs, seconds = attrs["runs"], attrs["seconds"]
    share = float(dataset["converged"].mean())
    print(f"device                {jax.devices()[0].device_kind}")
    print(f"runs                  {runs} in {seconds:.1f} s, compilation included")
    if runs:
        print(f"throughput            {runs / seconds:.2f} runs/s")
    print(f"converged             {100 * share:.2f}% of all cells")
    print(f"steps per run         {float(dataset['iterations'].mean()):.1f}")
    useful = attrs["useful_bytes"] / seconds
    print(f"useful bandwidth      {useful / 1e9:.1f} GB/s over the whole command")
    print(f"gradient alone        {attrs['evaluations_per_second']:.0f} per second, "
          f"{attrs['evaluation_bandwidth'] / 1e9:.1f} GB/s of tokens")  # fmt: skip
    copy = attrs["copy_bandwidth"]
    print(f"plain copy            {copy / 1e9:.1f} GB/s; the gradient reads at "
          f"{attrs['evaluation_bandwidth'] / copy:.2f} of it, the command at "
          f"{useful / copy:.3f}")  # fmt: skip
    print(f"written               {target}")


if __name__ == "__main__":
    sys.exit(main())
