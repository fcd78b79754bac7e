"""The explorer with small sizes for fast tests, as a program.

    python small_explorer.py [OPTIONS OF dotphase explore]
    python small_explorer.py worker

All else is the same as in ``dotphase explore`` and its processes.
"""

import sys

import numpy as np

from dotphase.explorer import (
    branch_curves,
    descent,
    landscape,
    solver,
    stored_diagrams,
)
from dotphase.runtime import processes
from dotphase.theory.settings import SolverSettings

#: Settings of the final numbers.
FINAL = SolverSettings(rtol=5e-2, max_log2_points=13)


def shrink():
    solver.FINAL = FINAL
    branch_curves.ALPHAS = np.linspace(0.5, 2.0, 4)
    branch_curves.LOG2_POINTS, branch_curves.CROSSING_LOG2_POINTS = 12, 13
    landscape.SIZE = 3
    stored_diagrams.ALPHAS = np.linspace(0.5, 2.0, 3)
    stored_diagrams.OMEGAS = np.linspace(0.0, 0.6, 3)
    descent.STAGES = (
        {"log2_ensemble": 7, "repetitions": 2, "rtol": None},
        {"log2_ensemble": 8, "repetitions": 2, "rtol": 1.0},
    )
    processes.COMMAND = (__file__, "worker")


if __name__ == "__main__":
    shrink()
    if sys.argv[1:2] == ["worker"]:
        del sys.argv[1]
        processes.main()
    from dotphase.cli.main import main

    sys.argv.insert(1, "explore")
    main()
