"""The order parameters of the theory and the fields that they define."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Array, Float

from dotphase.config import validation
from dotphase.config.formatting import Description
from dotphase.errors import InvalidInput
from dotphase.model import Model

#: Size of Q^T Q/d below which the student is zero.
MIN_WEIGHT = 1e-5

#: NumPy outside compiled functions, JAX inside.
AnyArray = Array | np.ndarray


#: Names of the dimensions of overlaps in datasets.
DIMENSIONS = {
    "q": ("token", "column", "column_2"),
    "m": ("direction", "column"),
    "V": ("token", "column", "column_2"),
    "theta": ("token", "column", "teacher_column"),
}


class Overlaps(NamedTuple):
    """Order parameters, one entry per token.

    Attributes
    ----------
    q : (L, r, r) variance of the student's fields, ``sigma_l^2 Q^T Q / d``
    m : (L, r) their mean, ``Q^T p_l / sqrt d``; with latent means ``Q^T v_j / sqrt d`` for all
        directions v_j: positions, if there are any, then the mu_j
    V : (L, r, r) variance of the fields in the proximal map
    theta : (L, r, t) covariance with the teacher's fields, ``sigma_l^2 Q^T Q* / d``

    Examples
    --------
    >>> solution = dp.solve(dp.positional_semantic(), alpha=2.0, log2_points=12)
    >>> near = solution.overlaps._replace(theta=0.9 * solution.overlaps.theta)
    >>> again = dp.solve(dp.positional_semantic(), 2.0, near, log2_points=12)
    >>> again.found
    'semantic'
    """

    q: Float[AnyArray, "tokens r r"]
    m: Float[AnyArray, "directions r"]
    V: Float[AnyArray, "tokens r r"]
    theta: Float[AnyArray, "tokens r t"]

    @property
    def description(self) -> Description:
        """Norms for token 1, and all numbers."""
        norms = ", ".join(f"{name} = {norm:.6g}" for name, norm in norms_of(self).items())
        rows = [(name, str(np.asarray(part).tolist())) for name, part in self._asdict().items()]
        return Description(f"{norms} (token 1 of {len(self.q)})", tuple(rows))

    def __repr__(self) -> str:
        try:
            return f"<Overlaps: {self.description.title}>"
        except TypeError:  # inside compiled functions there are no numbers
            return tuple.__repr__(self)

    def _repr_html_(self) -> str:
        return self.description.html()


class Conjugates(NamedTuple):
    """Conjugate parameters: averages of the force ``g`` of the proximal map."""

    qhat: Float[AnyArray, "tokens r r"]
    mhat: Float[AnyArray, "directions r"]
    Vhat: Float[AnyArray, "tokens r r"]
    thetahat: Float[AnyArray, "tokens r t"]


class ModelNumbers:
    """Attributes of a model, each computed once and then as fast as those of a plain object."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._model, name)
        setattr(self, name, value)
        return value


def inverse(matrix: Any) -> np.ndarray:
    """Inverses of square matrices on the last two axes; `LinAlgError` where one is singular."""
    is_scalar = matrix.shape[-1] == 1 and matrix.all()
    return np.asarray(1 / matrix if is_scalar else np.linalg.inv(matrix))


def smallest_eigenvalue(matrix: Any) -> float:
    """Smallest eigenvalue of all symmetric matrices on the last two axes."""
    values = matrix if matrix.shape[-1] == 1 else np.linalg.eigvalsh(matrix)
    return float(values.min())


def shapes_of(model: Model) -> tuple[tuple[int, ...], ...]:
    """Shapes of the overlaps q, m, V and theta of a model."""
    length, r, t = model.length, model.student_rank, model.teacher_rank
    return (length, r, r), (model.directions, r), (length, r, r), (length, r, t)


def check_overlaps(model: Model, overlaps: Any) -> Overlaps:
    """Check a user's overlaps and convert them to arrays; `InvalidInput` if they are impossible."""
    shapes = zip(Overlaps._fields, shapes_of(model), strict=True)
    parts = (validation.array(f"start.{n}", getattr(overlaps, n, None), size) for n, size in shapes)
    checked = Overlaps(*parts)
    for name in ("q", "V"):
        value = getattr(checked, name)
        if not np.allclose(value, value.swapaxes(1, 2)) or smallest_eigenvalue(value) <= 0:
            rule = "must be symmetric and positive definite"
            raise InvalidInput(f"start.{name}", value.tolist(), rule)
    if not admissible(model, checked):
        rule = "must leave sigma_l^2 I - theta_l^T q_l^{-1} theta_l positive definite"
        raise InvalidInput("start.theta", checked.theta.tolist(), rule)
    return checked


def admissible(model: Model, overlaps: Overlaps) -> bool:
    """True if the overlaps are variances and covariances of Gaussian fields."""
    if not all(np.all(np.isfinite(part)) for part in overlaps):
        return False
    if min(smallest_eigenvalue(overlaps.q), smallest_eigenvalue(overlaps.V)) <= 0:
        return False
    explained_part = overlaps.theta.swapaxes(1, 2) @ inverse(overlaps.q) @ overlaps.theta
    remaining = np.asarray(model.rho)[:, None, None] * np.eye(model.teacher_rank) - explained_part
    return smallest_eigenvalue(remaining) > 0


def is_zero(overlaps: Overlaps, model: Model) -> bool:
    """True if the ridge has driven the student's weights to zero."""
    return bool(np.trace(overlaps.q[0]) < MIN_WEIGHT * float(model.rho[0]) * model.student_rank)


def norms_of(overlaps: Any) -> dict[str, float]:
    """Frobenius norms of the overlaps of token 1; scalar parameters are left out."""
    parts = {name: np.asarray(part) for name, part in overlaps._asdict().items()}
    return {name: float(np.linalg.norm(part[0])) for name, part in parts.items() if part.ndim}
