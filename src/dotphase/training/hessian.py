"""What kind of critical point the trained weights are: the smallest curvatures there.

Lanczos iteration on exact Hessian-vector products; each costs two products with the token
matrix, as a gradient does.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from dotphase.config import validation
from dotphase.finite_d import loss
from dotphase.finite_d.datasets import count_sentences, sample
from dotphase.finite_d.loss import Reduced, Weights
from dotphase.finite_d.prng_keys import keys_at
from dotphase.model import Model
from dotphase.runtime import interrupt
from dotphase.runtime.precision import in_double_precision

#: Up to this many weights the Hessian is written out.
DENSE = 64
#: Curvatures closer to zero than this share of the largest one are called flat.
FLAT = 1e-9
#: Gradient norm over sqrt(d) above which a point is not critical at all.
CRITICAL = 1e-4

_reduce, _project = eqx.filter_jit(loss.reduce), eqx.filter_jit(loss.project)
_slope = eqx.filter_jit(loss.value_and_gradient)
_product = eqx.filter_jit(loss.hessian_product)


@dataclass(frozen=True)
class Curvature:
    """The smallest eigenvalues of the Hessian of the training loss at a point.

    Attributes
    ----------
    eigenvalues : the smallest ones, in ascending order
    largest : the largest one, for scale
    gradient_norm : norm of the gradient there
    critical : whether the gradient is small enough to speak of a critical point
    products : Hessian-vector products used
    converged : whether Lanczos iteration converged
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
    direction: Float[np.ndarray, "d r"] = field(repr=False)

    @property
    def smallest(self) -> float:
        """The smallest eigenvalue."""
        return float(self.eigenvalues[0])

    @property
    def verdict(self) -> str:
        """``minimum``, ``saddle``, ``flat``, or ``not critical``."""
        if not self.critical:
            return "not critical"
        if abs(self.smallest) <= FLAT * self.largest:
            return "flat"
        return "minimum" if self.smallest > 0 else "saddle"

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings, ready for JSON."""
        return {
            "verdict": self.verdict,
            "smallest": self.smallest,
            "eigenvalues": self.eigenvalues.tolist(),
            "largest": self.largest,
            "gradient_norm": self.gradient_norm,
            "products": self.products,
            "converged": self.converged,
        }

    def __str__(self) -> str:
        return (
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
    run: int = 0,
    seed: int = 0,
    count: int = 4,
) -> Curvature:
    """Smallest eigenvalues of the Hessian at the weights of a run of `train` or `amp`.

    Parameters
    ----------
    model, alpha, d, seed
        As given to `train` or `amp`; the data set is drawn again from them.
    weights : (d, r) array
        Where to look, as in `Run.weights`.
    run : int
        Number of the run, as in `Run.seed`.
    count : int
        How many of the smallest eigenvalues.

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
    number = validation.integer("run", run, at_least=0)
    data = sample(model, d, n, keys_at(root, jnp.asarray([[number]]))[0])
    return smallest_curvatures(model, _reduce(model, data), point, count)


def smallest_curvatures(model: Model, some: Reduced, point: Weights, count: int) -> Curvature:
    """`curvature` on a data set that is at hand."""
    size = point.size
    x = _project(some.z, point)
    _, gradient = _slope(model, some, point)
    products = 0

    def apply(vector: np.ndarray) -> np.ndarray:
        nonlocal products
        interrupt.check()
        products += 1
        direction = jnp.asarray(vector).reshape(point.shape)
        return np.asarray(_product(model, some, x, direction)).ravel()

    converged = True
    if size <= DENSE or count >= size - 1:
        matrix = np.stack([apply(row) for row in np.eye(size)])
        values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
        largest = float(values[-1])
        values, vectors = values[:count], vectors[:, :count]
    else:
        operator = LinearOperator((size, size), matvec=apply, dtype=np.float64)
        first = np.random.default_rng(0).standard_normal(size)
        top = eigsh(operator, 1, which="LA", v0=first, tol=1e-3, return_eigenvectors=False)
        largest, room = float(top[0]), min(size, max(40, 4 * count))
        try:
            values, vectors = eigsh(operator, count, which="SA", v0=first, ncv=room, tol=1e-8)
        except ArpackNoConvergence as error:
            converged = False
            values, vectors = error.eigenvalues, error.eigenvectors
            if not values.size:
                raise
            warnings.warn("Lanczos iteration found only some eigenvalues", stacklevel=2)
    order = np.argsort(values)
    slope = float(jnp.linalg.norm(gradient))
    return Curvature(
        eigenvalues=np.asarray(values)[order],
        largest=largest,
        gradient_norm=slope,
        critical=slope <= CRITICAL * float(np.sqrt(point.shape[0])),
        products=products,
        converged=converged,
        direction=np.asarray(vectors)[:, order[0]].reshape(point.shape),
    )
