"""alpha_c of the paper's model on a fixed quadrature rule, to show the bias of such rules."""

from __future__ import annotations

from typing import Any

import numpy as np

from dotphase import Model, solve
from dotphase.analysis import locate_fall, solve_on_rule


def rule_alpha_c(model: Model, rule: Any, near: float, width: float = 0.15) -> float:
    """alpha_c on a rule, where its two training losses cross; NaN if they do not.

    Parameters
    ----------
    rule : points and weights
    near : float
        Approximate alpha_c; both branches start from the library's solutions there.
    width : float
        Relative half-width of the searched interval.
    """
    overlaps = {
        name: solve(model, near, start=name, log2_points=14).overlaps
        for name in ("semantic", "positional")
    }
    alphas = near * np.linspace(1 - width, 1 + width, 7)
    gaps = []
    for alpha in alphas[::-1]:
        losses = {}
        for name, start in overlaps.items():
            overlaps[name], losses[name] = solve_on_rule(model, float(alpha), start, rule)
        gaps.append(losses["semantic"] - losses["positional"])
    return locate_fall(alphas, np.array(gaps[::-1]), np.zeros(len(alphas)))[0]
