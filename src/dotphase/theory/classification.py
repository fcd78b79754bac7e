"""Which branch a fixed point belongs to."""

from __future__ import annotations

import numpy as np

from dotphase.model import Model
from dotphase.theory.branches import BRANCHES
from dotphase.theory.overlaps import NOTHING, Overlaps

#: Share of its largest possible value above which an alignment counts as present.
PRESENT = 0.01
#: What a solution is called that was started from a user's own overlaps.
CUSTOM = "custom"


def alignment(model: Model, overlaps: Overlaps) -> tuple[float, float]:
    """How far the student is aligned with the teacher and with the positions, each in [0, 1]."""
    rho = np.asarray(model.rho)
    spread = np.maximum(np.trace(overlaps.q, axis1=1, axis2=2), NOTHING * rho)
    semantic = np.linalg.norm(overlaps.theta, axis=(1, 2)) / np.sqrt(spread * rho)
    mean = np.linalg.norm(overlaps.m, axis=1)
    if model.latent is not None:  # directions, not tokens
        spread = np.min(spread)
    positional = mean / np.sqrt(mean**2 + spread)
    return float(np.max(semantic)), float(np.max(positional))


def classify(model: Model, overlaps: Overlaps) -> str:
    """Name of the branch that the overlaps belong to: the first on which the same ones vanish."""
    semantic, positional = alignment(model, overlaps)
    present = {"theta": semantic > PRESENT, "m": positional > PRESENT}
    vanishing = {name for name, there in present.items() if not there}
    return next(name for name, branch in BRANCHES.items() if branch.vanishing == vanishing)


def belongs(branch: str, found: str) -> bool:
    """Whether a fixed point that `classify` calls `found` is one of the branch asked for."""
    if branch in (found, CUSTOM):
        return True
    return branch in BRANCHES and BRANCHES[branch].vanishing == BRANCHES[found].vanishing
