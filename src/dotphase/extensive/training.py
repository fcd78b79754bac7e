"""Training at finite d: full-batch L-BFGS on ``n = round(alpha d^2)`` sentences."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.optimize import minimize

from dotphase.config import validation
from dotphase.config.formatting import Description
from dotphase.extensive import QUANTITIES
from dotphase.extensive.solve import WidePoint, WideResult, check_point
from dotphase.model.paper import kind_mixing
from dotphase.numerics.statistics import error_of_mean
from dotphase.runtime.memory_limit import check_storage
from dotphase.runtime.precision import in_double_precision

#: Largest dimension of a token.
MAX_D = 2000
#: Fresh sentences for the test error.
HELD_OUT = 20_000
#: Largest number of iterations; largest gradient, relative to the ridge, of a trained student.
MAX_ITERATIONS, TOLERANCE = 2000, 1e-3
#: Smallest eigenvalue that counts for the rank, relative to the largest.
RANK_CUT = 1e-3
#: Long names of the numbers of a student, which has no response.
MEASURED = {name: text for name, text in QUANTITIES.items() if name != "V"}


@dataclass(frozen=True, eq=False, repr=False)
class WideTraining(WidePoint, WideResult):
    """Trained students of unrestricted width, one for each data set.

    Attributes
    ----------
    alpha, rho, ridge, length, omega, d : the request
    q, m, trace, rank, shift, train_loss, test_error : of each student, in the units of the theory
    eigenvalues : of each ``S = Q Q^T``, increasing
    converged : whether the gradient is small, for each student
    seconds : wall time

    Examples
    --------
    >>> runs = dp.wide.train(alpha=0.7, rho=0.5, ridge=0.1, d=20, seeds=2)
    >>> runs.eigenvalues.shape
    (2, 20)
    """

    dimensions: ClassVar = {
        **dict.fromkeys(MEASURED, ("seed",)), "eigenvalues": ("seed", "eigenvalue")
    }  # fmt: skip
    long_names: ClassVar = {**MEASURED, "eigenvalues": "eigenvalues of S"}

    d: int
    q: Float[np.ndarray, " seed"]
    m: Float[np.ndarray, " seed"]
    trace: Float[np.ndarray, " seed"]
    rank: Float[np.ndarray, " seed"]
    shift: Float[np.ndarray, " seed"]
    train_loss: Float[np.ndarray, " seed"]
    test_error: Float[np.ndarray, " seed"]
    eigenvalues: Float[np.ndarray, "seed d"] = field(repr=False)
    converged: tuple[bool, ...]
    seconds: float

    @property
    def stderr(self) -> dict[str, float]:  # type: ignore[override]
        """Standard errors of the means."""
        return {name: float(error_of_mean(getattr(self, name))) for name in MEASURED}

    @property
    def description(self) -> Description:
        """Means over data sets with their errors."""
        failed = self.converged.count(False)
        state = f"NOT CONVERGED ({failed} of {len(self.q)}): " if failed else ""
        return self.describe(f"{state}{len(self.q)} students")


@in_double_precision
def train(
    *,
    alpha: float,
    rho: float,
    ridge: float,
    d: int,
    seeds: int = 4,
    length: int = 2,
    omega: float = 0.0,
    seed: int = 0,
) -> WideTraining:
    """Train students ``S = Q Q^T`` with square Q from random weights.

    Positional weights are represented by the shift that they make, which is trained as well.

    Parameters
    ----------
    alpha, rho, ridge, length, omega
        As for `dotphase.wide.solve`, with two or three tokens.
    d : int
        Dimension of a token.
    seeds : int
        Number of data sets, each with a teacher of its own.
    seed : int
        Root seed.

    Examples
    --------
    >>> runs = dp.wide.train(alpha=0.7, rho=0.5, ridge=0.1, d=20, seeds=2)
    >>> abs(runs.mean["test_error"] - 0.026) < 0.02
    True
    """
    start = time.perf_counter()
    point = check_point(alpha, rho, ridge, length, omega)
    validation.integer("length", length, at_least=2)
    validation.integer("d", d, at_least=2, at_most=MAX_D)
    count = validation.integer("seeds", seeds, at_least=1)
    root = validation.integer("seed", seed, at_least=0)
    # Tokens, their projections and gradients: six arrays of the size of the data set.
    check_storage("sentences", round(alpha * d**2), 48 * length * d)
    rows = [_student(np.random.default_rng([root, index]), d, point) for index in range(count)]
    columns: dict[str, Any] = {name: np.asarray([row[name] for row in rows]) for name in rows[0]}
    columns["converged"] = tuple(columns["converged"].tolist())
    return WideTraining(**vars(point), d=d, **columns, seconds=time.perf_counter() - start)


@jax.jit
def attention(
    tokens: Float[Array, "n L d"], Q: Float[Array, "d width"], shift: Float[Array, ""]
) -> Float[Array, "n L L"]:
    """Softmax of ``(x_a^T S x_b - delta_ab Tr S)/sqrt d``, with a shift of the diagonal."""
    length, d = tokens.shape[1:]
    projected = tokens @ Q
    diagonal = shift - jnp.sum(Q**2) / np.sqrt(d)
    scores = projected @ projected.swapaxes(1, 2) / np.sqrt(d) + diagonal * jnp.eye(length)
    return jax.nn.softmax(scores, axis=-1)


@jax.jit
@jax.value_and_grad
def _objective(
    weights: Float[Array, " d*d+1"], tokens: Array, target: Array, ridge: Array, with_shift: Array
) -> Float[Array, ""]:
    """Training loss divided by d^2, as a function of the entries of Q and of the shift."""
    d = tokens.shape[2]
    Q, shift = weights[:-1].reshape(d, d), weights[-1] * with_shift
    loss = jnp.sum((target - attention(tokens, Q, shift)) ** 2) / 2
    return loss / d**2 + ridge * jnp.sum(Q**2) / d


def _student(rng: np.random.Generator, d: int, point: WidePoint) -> dict[str, Any]:
    """Train one student and measure it."""
    rho, ridge, omega, length = point.rho, point.ridge, point.omega, point.length
    W = rng.standard_normal((d, max(round(rho * d), 1))) / np.sqrt(d * np.sqrt(rho))

    def sentences(n: int) -> tuple[Array, Array]:
        tokens = jnp.asarray(rng.standard_normal((n, length, d)))
        semantic = attention(tokens, W, 0.0)  # type: ignore[arg-type]
        return tokens, (1 - omega) * semantic + omega * kind_mixing(length, length)

    data = sentences(max(round(point.alpha * d**2), 1))
    minimum = minimize(
        lambda weights: _objective(weights, *data, ridge, float(omega > 0)),
        np.append(rng.standard_normal(d * d) / np.sqrt(d), 0.0), jac=True, method="L-BFGS-B",
        options={"maxiter": MAX_ITERATIONS, "maxfun": 2 * MAX_ITERATIONS, "maxcor": 20,
                 "ftol": 1e-15, "gtol": 1e-3 * TOLERANCE * ridge / d},
    )  # fmt: skip
    Q, shift = minimum.x[:-1].reshape(d, d), float(minimum.x[-1])
    S = Q @ Q.T
    eigenvalues = np.linalg.eigvalsh(S)
    tokens, target = sentences(HELD_OUT)
    errors = (target - attention(tokens, Q, shift)) ** 2  # type: ignore[arg-type]
    return {
        "q": np.sum(S**2) / d,
        "m": np.sum((Q.T @ W) ** 2) / d,
        "trace": np.trace(S) / d,
        "rank": np.mean(eigenvalues > RANK_CUT * max(eigenvalues[-1], 1e-6)),
        "shift": shift,
        "train_loss": minimum.fun,
        "test_error": float(jnp.sum(errors)) / (length * HELD_OUT),
        "eigenvalues": eigenvalues,
        "converged": np.linalg.norm(minimum.jac) < TOLERANCE * ridge,
    }
