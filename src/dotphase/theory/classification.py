"""Assign a fixed point to a branch by the overlaps that vanish."""

from __future__ import annotations

import numpy as np

from dotphase.model import Model
from dotphase.theory.branches import BRANCHES
from dotphase.theory.overlaps import MIN_WEIGHT, Overlaps

#: Share of its largest possible value above which an alignment is detected.
DETECTION_THRESHOLD = 0.01
#: Branch name of solutions from a user's own initialization.
CUSTOM = "custom"


def alignments(model: Model, overlaps: Overlaps) -> dict[str, float]:
    """Alignment with the teacher ("theta") and with the positions ("m"), each in [0, 1]."""
    rho = np.asarray(model.rho)
    spread = np.maximum(np.trace(overlaps.q, axis1=1, axis2=2), MIN_WEIGHT * rho)
    semantic = np.linalg.norm(overlaps.theta, axis=(1, 2)) / np.sqrt(spread * rho)
    mean = np.linalg.norm(overlaps.m, axis=1)
    if model.latent is not None:  # m has one row for each direction, not for each token
        spread = np.min(spread)
    positional = mean / np.sqrt(mean**2 + spread)
    return {"theta": float(np.max(semantic)), "m": float(np.max(positional))}


def classify(model: Model, overlaps: Overlaps) -> str:
    """Name of the first branch on which the same overlaps vanish."""
    sizes = alignments(model, overlaps)
    vanishing = {name for name, size in sizes.items() if not size > DETECTION_THRESHOLD}
    return next(name for name, branch in BRANCHES.items() if branch.vanishing == vanishing)


def matches_branch(requested: str, classified: str) -> bool:
    """True if a fixed point of the classified branch counts as one of the requested branch."""
    if requested in (classified, CUSTOM):
        return True
    if requested not in BRANCHES:
        return False
    return BRANCHES[requested].vanishing == BRANCHES[classified].vanishing
