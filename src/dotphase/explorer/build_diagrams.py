"""Compute the packaged diagrams: ``python -m dotphase.explorer.build_diagrams``."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

from dotphase.experiments.dynamics.filled_diagram import fill
from dotphase.experiments.theory.diagram import diagram
from dotphase.explorer.point import Point
from dotphase.explorer.stored_diagrams import ALPHAS, OMEGAS, POINTS, slim
from dotphase.model import Model
from dotphase.storage.files import write_dataset

FOLDER = Path(__file__).parent / "data"


def build(mixing: str) -> Path:
    """Compute and write the diagram of one of the paper's matrices A."""

    def family(omega: float) -> Model:
        return Point(mixing=mixing, omega=omega).model()

    total, done = 2 * OMEGAS.size * ALPHAS.size, itertools.count(1)

    def count(_: object) -> None:
        print(f"\r{mixing}: {next(done)} of {total} points", end="", file=sys.stderr)

    dataset = diagram(family, ALPHAS.tolist(), OMEGAS.tolist(), log2_points=POINTS, progress=count)
    return write_dataset(slim(fill(dataset, family)), FOLDER / f"{mixing}.nc")


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name in sys.argv[1:] or ("standard", "other"):
        print(build(name))
