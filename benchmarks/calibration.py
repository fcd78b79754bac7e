"""Are the standard errors of the theory right? Solutions of many seeds beside what each claims.

    python benchmarks/calibration.py

For every case and quantity: the spread of the solutions with other Gaussian points over the
standard error that they give (root mean square). 1 is right, above 1 too bold; with 20 seeds 95%
of right ones lie between .68 and 1.31. Kept for the benchmark page (`make bench`).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

import dotphase as dp

DATA = Path(__file__).parent / "data" / "calibration.json"
SEEDS = 20
#: Model, alpha, branch, settings.
CASES: dict[str, tuple[dp.Model, float, str, dict[str, Any]]] = {
    "paper, semantic, 2^13": (dp.positional_semantic(), 2.0, "semantic", {"log2_points": 13}),
    "paper, semantic": (dp.positional_semantic(), 2.0, "semantic", {}),
    "paper, positional, 2^13": (dp.positional_semantic(), 1.0, "positional", {"log2_points": 13}),
    "paper, positional": (dp.positional_semantic(), 1.0, "positional", {}),
    "three tokens": (dp.positional_semantic_length(3), 1.5, "semantic", {}),
    "six tokens": (dp.positional_semantic_length(6), 1.0, "semantic", {"log2_points": 13}),
    "logistic": (dp.load_model("logistic"), 2.0, "semantic", {}),
