"""The plane of Q* and p_1, for students and teachers of one column.

Where the positional Gram matrix is of rank one, ``P_kl = P_11 u_k u_l``, and Q* is orthogonal to
the positions, the components of Q along Q* and along p_1 are given by ``t = Q.Q*/d`` and
``m = Q.p_1/sqrt d`` alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from jaxtyping import Float

from dotphase.errors import InvalidInput
from dotphase.model.definition import Model, refuse

F = TypeVar("F", float, np.ndarray)


@dataclass(frozen=True, eq=False)
class Plane:
    """Geometry of the plane of Q* and p_1 of a model.

    Attributes
    ----------
    rho : sigma_1^2, so that ``theta = rho t`` and ``q = rho W``
    length : P_11
    pattern : u_l, with ``p_l = u_l p_1``
    """

    rho: float
    length: float
    pattern: Float[np.ndarray, " tokens"]

    @classmethod
    def of(cls, model: Model) -> Plane:
        """The plane of a model; `InvalidInput` if it has none."""
        refuse(model, "the plane of Q* and p_1", "latent", "correlation")
        if model.student_rank != 1 or model.teacher_rank != 1:
            ranks = (model.student_rank, model.teacher_rank)
            raise InvalidInput("ranks of student and teacher", ranks, "must both be 1")
        gram = np.asarray(model.positions)
        if gram[0, 0] <= 0 or not np.allclose(gram, np.outer(gram[0], gram[0]) / gram[0, 0]):
            rule = "must be of rank one with p_1 different from zero"
            raise InvalidInput("positions", gram.tolist(), rule)
        return cls(float(model.rho[0]), float(gram[0, 0]), gram[0] / gram[0, 0])

    def weight(self, m: F, t: F) -> F:
        """The part of ``W = |Q|^2/d`` that lies in the plane, ``t^2 + m^2/P_11``."""
        return t**2 + m**2 / self.length
