"""The families of fixed points: where each one is started from, and which one was found."""

from __future__ import annotations

import numpy as np

from dotphase._numerics import validate
from dotphase.model import Model
from dotphase.theory.overlaps import NOTHING, Overlaps

#: Names of the branches: aligned with the teacher, with the positions, with neither, with both.
BRANCHES = ("semantic", "positional", "uninformed", "mixed")

#: Share of its largest possible value above which an alignment counts as present.
PRESENT = 0.01


def starting_overlaps(model: Model, branch: str) -> Overlaps:
    """Overlaps in the basin of a branch.

    The first columns of Q are given the mechanism of the branch; the columns left over
    start uninformed. In the mixed branch the last column is positional and the ones before
    it semantic; with a single column, that column is both.
    """
    validate.choice("branch", branch, BRANCHES)
    r, t, length = model.student_rank, model.teacher_rank, model.length
    rho = np.asarray(model.rho)[:, None, None]
    # Unequal sizes: columns that start the same would stay the same by symmetry.
    weight = np.diag(0.3 * 0.8 ** np.arange(r))
    theta = np.zeros((r, t))
    m = np.zeros((length, r))
    if branch in ("semantic", "mixed"):
        columns = min(t, r - 1) if branch == "mixed" and r > 1 else min(t, r)
        for j in range(columns):
            theta[j, j] = 0.8 * np.sqrt(weight[j, j])
    if branch in ("positional", "mixed"):
        column = 0 if branch == "positional" else r - 1
        m[:, column] = 0.25 * _leading_pattern(model)
    inverse = 40.0 * np.eye(r)
    return Overlaps(q=rho * weight, m=m, V=rho * inverse, theta=rho * theta)


def _leading_pattern(model: Model) -> np.ndarray:
    """Strongest mode of the positional Gram matrix, scaled to a largest entry of one."""
    values, vectors = np.linalg.eigh(np.asarray(model.positions))
    if values[-1] <= 0:
        return np.zeros(model.length)
    mode = vectors[:, -1] * np.sqrt(values[-1])
    return np.asarray(mode / mode[np.argmax(np.abs(mode))])


def alignment(model: Model, overlaps: Overlaps) -> tuple[float, float]:
    """How far the student is aligned with the teacher and with the positions, each in [0, 1]."""
    rho = np.asarray(model.rho)
    spread = np.maximum(np.trace(overlaps.q, axis1=1, axis2=2), NOTHING * rho)
    semantic = np.linalg.norm(overlaps.theta, axis=(1, 2)) / np.sqrt(spread * rho)
    mean = np.linalg.norm(overlaps.m, axis=1)
    positional = mean / np.sqrt(mean**2 + spread)
    return float(np.max(semantic)), float(np.max(positional))


def classify(model: Model, overlaps: Overlaps) -> str:
    """Name of the branch that the overlaps belong to."""
    semantic, positional = alignment(model, overlaps)
    if semantic > PRESENT and positional > PRESENT:
        return "mixed"
    if semantic > PRESENT:
        return "semantic"
    return "positional" if positional > PRESENT else "uninformed"
