"""Branches of fixed points, and the initialization that the known ones share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dotphase.model import Model
from dotphase.model.deep import require_layers
from dotphase.theory.overlaps import Overlaps


@dataclass(frozen=True)
class Branch:
    """A family of fixed points.

    Attributes
    ----------
    initial_overlaps : overlaps in its basin, for a model
    vanishing : which of m and theta are zero on it. A fixed point is named after the first branch
        on which the same ones vanish.
    continue_upwards : whether it is followed from small alpha upwards, where its basin is widest,
        or from large alpha downwards. From the other end a weak look-alike is often found instead.
    variant_of : name of the branch on which the same overlaps vanish, for another initialization of
        it. Surveys of all branches leave such variants out.
    objection : reason why a model does not have this branch, or None
    """

    initial_overlaps: Callable[[Model], Overlaps]
    vanishing: frozenset[str] = frozenset()
    continue_upwards: bool = False
    variant_of: str | None = None
    objection: Callable[[Model], str | None] = lambda model: None


def aligned_overlaps(
    model: Model, semantic: int | Sequence[int] = 0, positional: int | None = None
) -> Overlaps:
    """Overlaps of columns aligned with the teacher or the positions.

    Parameters
    ----------
    semantic : int or sequence of int
        Indices of the columns that are aligned with those of the teacher; a number for the first.
    positional : int, optional
        Index of the column that is aligned with the positions. Other columns are uninformed.
    """
    r, t = model.student_rank, model.teacher_rank
    rho = np.asarray(model.rho)[:, None, None]
    # Unequal sizes break the symmetry between columns.
    weight = np.diag(0.3 * 0.8 ** np.arange(r))
    theta, m = np.zeros((r, t)), np.zeros((model.directions, r))
    aligned = np.arange(semantic) if isinstance(semantic, int) else np.asarray(semantic)
    theta[aligned, aligned] = 0.8 * np.sqrt(weight[aligned, aligned])
    if positional is not None:
        m[:, positional] = 0.25 * _leading_pattern(model)
    inverse = 40.0 * np.eye(r)
    return Overlaps(q=rho * weight, m=m, V=rho * inverse, theta=rho * theta)


def branch_of_layer(index: int) -> Branch:
    """Make the branch of deep attention on which one layer alone is aligned with the teacher."""
    return Branch(
        lambda model: aligned_overlaps(model, semantic=[index]),
        vanishing=frozenset({"m"}),
        variant_of="semantic",
        objection=require_layers,
    )


def _leading_pattern(model: Model) -> np.ndarray:
    """Strongest mode of the directions' Gram matrix, scaled to a largest entry of one."""
    values, vectors = np.linalg.eigh(np.asarray(model.gram))
    if values[-1] <= 0:
        return np.zeros(len(values))
    mode = vectors[:, -1] * np.sqrt(values[-1])
    return np.asarray(mode / mode[np.argmax(np.abs(mode))])
