"""Smallest curvatures of the training loss: is a trained student at a minimum or a saddle?

Lanczos iteration on exact Hessian-vector products. Each costs two products with the token matrix,
as a gradient does.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from dotphase.config import validation
from dotphase.config.formatting import Description
from dotphase.finite_d import loss
from dotphase.finite_d.datasets import count_sentences, sample
from dotphase.finite_d.loss import Reduced, Weights
from dotphase.finite_d.prng_keys import keys_at
from dotphase.model import Model
from dotphase.runtime import interrupt
from dotphase.runtime.precision import in_double_precision
from dotphase.storage.results import Result

if TYPE_CHECKING:
    import xarray as xr

#: Maximum number of weights for which the full Hessian is computed.
MAX_DENSE = 64
#: Curvatures below this fraction of the largest one are called flat.
FLAT_FRACTION = 1e-9
#: Norm of the gradient over sqrt(d) above which a point is not critical.
MAX_GRADIENT = 1e-4

_reduce, _project = eqx.filter_jit(loss.reduce), eqx.filter_jit(loss.project)
_value_and_gradient = eqx.filter_jit(loss.value_and_gradient)
_product = eqx.filter_jit(loss.hessian_product)


@dataclass(frozen=True, eq=False, repr=False)
class Curvature(Result):
    """The smallest eigenvalues of the Hessian of the training loss at a point.

    Attributes
    ----------
    eigenvalues : smallest eigenvalues, in ascending order
    largest : largest eigenvalue, for scale
    gradient_norm : norm of the gradient
    critical : True if the gradient is small enough for a critical point
    products : number of Hessian-vector products
    converged : True if the Lanczos iteration converged
    direction : eigenvector of the smallest eigenvalue

    Examples
    --------
    >>> bent = dp.curvature(dp.positional_semantic(), 2.0, 40, [[0.0]] * 40, count=1)
    >>> bent.eigenvalues.shape
    (1,)
    """

    eigenvalues: Float[np.ndarray, " k"]
    largest: float
    gradient_norm: float
    critical: bool
    products: int
    converged: bool
    direction: Float[np.ndarray, "d r"]

    @property
    def smallest(self) -> float:
        """Smallest eigenvalue."""
        return float(self.eigenvalues[0])

    @property
    def verdict(self) -> str:
        """Kind of the point: ``minimum``, ``saddle``, ``flat``, or ``not critical``."""
        if not self.critical:
            return "not critical"
        if abs(self.smallest) <= FLAT_FRACTION * self.largest:
            return "flat"
        return "minimum" if self.smallest > 0 else "saddle"

    def to_dict(self) -> dict[str, Any]:
        """Return numbers and strings, ready for JSON."""
        names = ("verdict", "smallest", "eigenvalues", "largest", "gradient_norm", "products",
                 "converged")  # fmt: skip
        values = {name: getattr(self, name) for name in names}
        return values | {"eigenvalues": self.eigenvalues.tolist()}

    def dataset(self) -> xr.Dataset:
        """Return eigenvalues, gradient norm and direction as a labeled dataset."""
        axes = {"eigenvalues_0": "eigenvalue", "direction_0": "weight", "direction_1": "column"}
        return super().dataset().rename(axes)

    @property
    def description(self) -> Description:
        """Verdict, extreme curvatures and gradient norm."""
        return Description(
            f"{self.verdict}: smallest curvature {self.smallest:.6g}, largest {self.largest:.4g}, "
            f"gradient norm {self.gradient_norm:.1e}"
        )


@in_double_precision
def curvature(
    model: Model,
    alpha: float,
    d: int,
    weights: Any,
    *,
    index: int = 0,
    seed: int = 0,
    teacher_norm: str = "fixed",
    count: int = 4,
) -> Curvature:
    """Compute the smallest eigenvalues of the Hessian at the weights of a run.

    Parameters
    ----------
    model, alpha, d, seed, teacher_norm
        Arguments of the `train` or `amp` that made the run; they determine its data set.
    weights : (d, r) array
        Point of the loss, such as `Run.weights`.
    index : int
        `Run.index` of the run.
    count : int
        Number of eigenvalues.

    Examples
    --------
    >>> training = dp.train(dp.positional_semantic(), alpha=2.0, d=40, seeds=2, start="semantic")
    >>> model = dp.positional_semantic()
    >>> bent = dp.curvature(model, 2.0, 40, training.runs[0].weights, count=1)
    >>> bent.critical
    True
    """
    n = count_sentences(model, alpha, d)
    point = jnp.asarray(validation.array("weights", weights, (d, model.student_rank)))
    count = validation.integer("count", count, at_least=1, at_most=point.size)
    root = jax.random.key(validation.integer("seed", seed, at_least=0))
    index = validation.integer("index", index, at_least=0)
    data = sample(model, d, n, keys_at(root, jnp.asarray([[index]]))[0], teacher_norm=teacher_norm)
    return smallest_curvatures(model, _reduce(model, data), point, count)


def smallest_curvatures(model: Model, data: Reduced, point: Weights, count: int) -> Curvature:
    """Compute the smallest curvatures on a given data set."""
    size = point.size
    x = _project(data.z, point)
    _, gradient = _value_and_gradient(model, data, point)
    products = 0

    def apply(vector: np.ndarray) -> np.ndarray:
        nonlocal products
        interrupt.check()
        products += 1
        direction = jnp.asarray(vector).reshape(point.shape)
        return np.asarray(_product(model, data, x, direction)).ravel()

    converged = True
    if size <= MAX_DENSE or count >= size - 1:
        matrix = np.stack([apply(row) for row in np.eye(size)])
        values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
        largest = float(values[-1])
        values, vectors = values[:count], vectors[:, :count]
    else:
        operator = LinearOperator((size, size), matvec=apply, dtype=np.float64)
        initial = np.random.default_rng(0).standard_normal(size)
        top = eigsh(operator, 1, which="LA", v0=initial, tol=1e-3, return_eigenvectors=False)
        largest, n_vectors = float(top[0]), min(size, max(40, 4 * count))
        try:
            values, vectors = eigsh(
                operator, count, which="SA", v0=initial, ncv=n_vectors, tol=1e-8
            )
        except ArpackNoConvergence as error:
            converged = False
            values, vectors = error.eigenvalues, error.eigenvectors
            if not values.size:
                raise
            warnings.warn("Lanczos iteration found only some eigenvalues", stacklevel=2)
    order = np.argsort(values)
    gradient_norm = float(jnp.linalg.norm(gradient))
    return Curvature(
        eigenvalues=np.asarray(values)[order],
        largest=largest,
        gradient_norm=gradient_norm,
        critical=gradient_norm <= MAX_GRADIENT * float(np.sqrt(point.shape[0])),
        products=products,
        converged=converged,
        direction=np.asarray(vectors)[:, order[0]].reshape(point.shape),
    )
