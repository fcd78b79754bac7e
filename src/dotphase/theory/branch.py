"""What a branch is, and the start that the known ones share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dotphase.model import Model
from dotphase.theory.overlaps import Overlaps


@dataclass(frozen=True)
class Branch:
    """A family of fixed points.

    Attributes
    ----------
    start : overlaps in its basin, for a model
    vanishing : which of m and theta are zero on it; branches in which the same ones vanish
        belong together, and a fixed point is named after the first of them
    from_few : whether it is followed from few data upwards, where its basin is widest, or from
        many downwards. From the wrong end it is easily missed for a weak look-alike.
    """

    start: Callable[[Model], Overlaps]
    vanishing: frozenset[str] = frozenset()
    from_few: bool = False


def aligned(model: Model, semantic: int = 0, positional: int | None = None) -> Overlaps:
    """A student whose columns have mechanisms.

    Parameters
    ----------
    semantic : int
        How many of the first columns are aligned with those of the teacher.
    positional : int, optional
        The column that is aligned with the positions. Columns left over start uninformed.
    """
    r, t = model.student_rank, model.teacher_rank
    rho = np.asarray(model.rho)[:, None, None]
    # Unequal sizes: columns that start the same would stay the same by symmetry.
    weight = np.diag(0.3 * 0.8 ** np.arange(r))
    theta, m, first = np.zeros((r, t)), np.zeros((model.directions, r)), np.arange(semantic)
    theta[first, first] = 0.8 * np.sqrt(weight[first, first])
    if positional is not None:
        m[:, positional] = 0.25 * _leading_pattern(model)
    inverse = 40.0 * np.eye(r)
    return Overlaps(q=rho * weight, m=m, V=rho * inverse, theta=rho * theta)


def _leading_pattern(model: Model) -> np.ndarray:
    """Strongest mode of the directions' Gram matrix, scaled to a largest entry of one."""
    values, vectors = np.linalg.eigh(np.asarray(model.gram))
    if values[-1] <= 0:
        return np.zeros(len(values))
    mode = vectors[:, -1] * np.sqrt(values[-1])
    return np.asarray(mode / mode[np.argmax(np.abs(mode))])
