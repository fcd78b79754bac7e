"""Compute the packaged diagrams: ``python -m dotphase.explorer.build_diagrams``."""

import sys
from pathlib import Path

from dotphase.experiments.dynamics.filled_diagram import fill_diagram
from dotphase.experiments.theory.diagram import diagram
from dotphase.explorer.point import Point
from dotphase.explorer.stored_diagrams import ALPHAS, LOG2_POINTS, OMEGAS, select_drawn
from dotphase.model import Model
from dotphase.runtime.progress import ProgressEvent
from dotphase.storage.files import write_dataset

FOLDER = Path(__file__).parent / "data"


def build(mixing: str) -> Path:
    """Compute and write the diagram of one of the paper's matrices A."""

    def family(omega: float) -> Model:
        return Point(mixing=mixing, omega=omega).model()

    def report(event: ProgressEvent) -> None:
        print(f"\r{mixing}: {event.done} of {event.total} points", end="", file=sys.stderr)

    dataset = diagram(
        family, ALPHAS.tolist(), OMEGAS.tolist(), log2_points=LOG2_POINTS, progress=report
    )
    return write_dataset(select_drawn(fill_diagram(dataset, family)), FOLDER / f"{mixing}.nc")


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name in sys.argv[1:] or ("standard", "other"):
        print(build(name))
