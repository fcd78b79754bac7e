"""State evolution of the Bayes-optimal estimator: the best any learner can do with the same data.

The teacher is ``T(h) = (1 - omega) softmax(h h^T) + omega A`` with one column and weights
Q* ~ N(0, I). A label determines T, and T determines the teacher's fields h up to a common sign,
so that the posterior of h given its Gaussian estimate has two points. With the overlap
``M = q_l/sigma_l^2`` between the estimate of Q* and Q*, tokens of any scale obey the same equation

    M = s/(1 + s),   s = alpha/(1 - M)^2 E|tanh(a.x sqrt(M)/(1 - M)) x - sqrt(M) a|^2,
    x = sqrt(M) a + sqrt(1 - M) z,   a, z ~ N(0, I_L).

The average depends on ``R = |x|^2`` (chi-squared with L degrees) and on
``b = sqrt(M) a.x = M R + sqrt(M (1 - M) R) n`` with n ~ N(0, 1) only, and is taken by
deterministic quadrature. Expanding it gives weak recovery (M > 0) at alpha = 1/(L (L + 1)) and
exact recovery (M = 1) at alpha = 1/L; for two tokens 1/6 and 1/2. Tokens that are correlated
inside a sentence are mixtures of independent ones, which T determines as well. The same equation
holds for them.

The best prediction of a new label is the posterior mean of T, whose error is the variance of
``T(h), h_l ~ N(omega_l, sigma_l^2 (1 - M))``, averaged over omega. Student, ridge and positions do
not enter.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.optimize import brentq
from scipy.special import gammaln

from dotphase.config import validation
from dotphase.config.formatting import Description, format_value
from dotphase.errors import InvalidInput
from dotphase.model.definition import Model, refuse, refuse_spectrum
from dotphase.model.derivatives import is_softmax_attention
from dotphase.model.paper import MixedTeacher
from dotphase.runtime.precision import in_double_precision
from dotphase.storage.results import Result
from dotphase.theory.layered_posterior import LayeredBayes, deep_teacher, layered_bayes
from dotphase.theory.posterior_error import test_error_at
from dotphase.theory.settings import check_alpha


@dataclass(frozen=True, eq=False, repr=False)
class BayesOptimal(Result):
    """The Bayes-optimal learner at one sample complexity.

    Attributes
    ----------
    overlap : M = q/sigma^2, from 0 (no information on Q*) to 1 (Q* is recovered)
    q, V : variance of the estimated fields, and the remaining variance, per token
    test_error, stderr : of the posterior mean, with its quadrature standard error
    weak_recovery, exact_recovery : True if M > 0, True if M = 1
    unique : True if the fixed point is the only stable one; otherwise it is the one that message
        passing without side information reaches
    residual : residual of the fixed-point equation
    converged : True if the equation was solved

    Examples
    --------
    >>> best = dp.bayes.optimal(dp.positional_semantic(), alpha=0.3)
    >>> best.converged
    True
    """

    alpha: float
    overlap: float
    q: tuple[float, ...]
    V: tuple[float, ...]
    test_error: float
    stderr: float
    weak_recovery: bool
    exact_recovery: bool
    unique: bool
    residual: float
    converged: bool

    @property
    def overlaps(self) -> tuple[float, ...]:
        """The overlap of each column of Q*: there is one."""
        return (self.overlap,)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, ready for JSON."""
        return asdict(self)

    @property
    def description(self) -> Description:
        """The overlap and the test error."""
        recovered = "all" if self.exact_recovery else "part" if self.weak_recovery else "nothing"
        rows = (
            ("overlap", f"{self.overlap:.6f} ({recovered} of the teacher)"),
            ("test error", format_value(self.test_error, self.stderr)),
        )
        return Description(f"Bayes-optimal at alpha = {self.alpha:g}", rows)


@in_double_precision
def bayes_optimal(model: Model, alpha: float, *, seed: int = 0) -> BayesOptimal | LayeredBayes:
    """Solve for the Bayes-optimal learner of a model's teacher.

    Parameters
    ----------
    model : Model
        Its teacher must be softmax attention with one column or deep attention, alone or mixed
        with a fixed matrix. Its student, positions and ridge are not used.
    alpha : float
        Samples per dimension.
    seed : int
        Seed of the points over which the test error is averaged, and the posteriors of deep
        attention.

    Returns
    -------
    BayesOptimal or LayeredBayes
        For deep attention a `dotphase.results.LayeredBayes`, with one overlap for each layer.

    Examples
    --------
    >>> best = dp.bayes.optimal(dp.positional_semantic(), alpha=0.3)
    >>> best.weak_recovery, best.exact_recovery
    (True, False)
    """
    alpha = check_alpha(alpha)
    seed = validation.integer("seed", seed, at_least=0)
    refuse_spectrum(model, "the Bayes-optimal line")
    if deep_teacher(model) is not None:
        return layered_bayes(model, alpha, seed)
    refuse(model, "the Bayes-optimal line", "latent", "noise")
    informative = check_teacher(model)
    overlap, unique = (0.0, True) if not informative else _overlap(alpha, model.length)
    rho = np.asarray(model.rho)
    error, spread = test_error_at(model, overlap, seed)
    residual = 0.0 if overlap in (0.0, 1.0) else abs(_drive(overlap, alpha, model.length))
    return BayesOptimal(
        alpha=alpha,
        overlap=overlap,
        q=tuple((rho * overlap).tolist()),
        V=tuple((rho * (1 - overlap)).tolist()),
        test_error=error,
        stderr=spread,
        weak_recovery=overlap > 0,
        exact_recovery=overlap == 1,
        unique=unique,
        residual=residual,
        converged=residual < 1e-9,
    )


def check_teacher(model: Model) -> bool:
    """True if labels depend on Q*; `InvalidInput` if the posterior has no closed form."""
    teacher, length = model.teacher, model.length
    if length >= 2 and model.teacher_rank == 1:
        if isinstance(teacher, MixedTeacher):
            return float(teacher.omega) < 1
        if is_softmax_attention(teacher, length, 1):
            return True
    name = getattr(teacher, "__name__", type(teacher).__name__)
    rule = (
        "must be softmax attention of two or more tokens with teacher_rank 1, alone or as a "
        "MixedTeacher: other teachers have no closed form here (see dp.bayes.numerical)"
    )
    raise InvalidInput("teacher", f"{name}, {length} tokens, rank {model.teacher_rank}", rule)


def transitions(length: int) -> tuple[float, float]:
    """Sample complexities of weak and of exact recovery, ``1/(L (L + 1))`` and ``1/L``.

    Examples
    --------
    >>> dp.bayes.transitions(2)[1]
    0.5
    """
    return 1 / (length * (length + 1)), 1 / length


def alpha_of_overlap(overlap: float, length: int) -> float:
    """The sample complexity at which M is a fixed point, ``0 < M < 1``.

    The equation is linear in alpha. The limits at M = 0 and 1 are the transitions.

    Examples
    --------
    >>> 1 / 6 < dp.bayes.alpha_of_overlap(0.3, length=2) < 1 / 2
    True
    """
    overlap = validation.number("overlap", overlap, above=0, at_most=1 - 1e-6)
    return overlap / (_drive(overlap, 1.0, length) + overlap)


def _overlap(alpha: float, length: int) -> tuple[float, bool]:
    """The stable fixed point closest to M = 0; True if it is the only one."""
    # The roots are dense at both ends of the interval.
    fine = np.geomspace(1e-7, 0.5, 120)
    grid = np.concatenate([fine, 1 - fine[-2::-1]])
    drive = np.asarray([_drive(M, alpha, length) for M in grid])
    falls = np.flatnonzero((drive[:-1] > 0) & (drive[1:] <= 0))
    weak, exact = transitions(length)
    unique = falls.size + (alpha <= weak) + (alpha >= exact) <= 1
    if alpha <= weak:
        return 0.0, bool(unique)
    if falls.size == 0:
        # Below 1/L the drive is negative at M = 1, so the root lies in the last cell.
        return 1.0 if alpha >= exact else float(grid[-1]), bool(unique)
    low, high = grid[falls[0]], grid[falls[0] + 1]
    root = brentq(_drive, low, high, args=(alpha, length), xtol=1e-15, rtol=1e-14)
    return float(root), bool(unique)


def _drive(M: float, alpha: float, length: int) -> float:
    """``(1 - M) s(M) - M``: positive where the overlap grows, zero at fixed points."""
    radius, n, weight = _nodes(length)
    R = radius[:, None] ** 2
    b = M * R + np.sqrt(M * (1 - M) * R) * n
    guess = np.tanh(b / (1 - M))
    # E|x - sqrt(M) a|^2 = L (1 - M) is split off: the rest vanishes if the sign is certain.
    correction = np.sum(weight * ((guess**2 - 1) * R + 2 * (1 - guess) * b))
    return float(alpha * (length + correction / (1 - M)) - M)


@lru_cache(maxsize=8)
def _nodes(
    length: int,
) -> tuple[Float[np.ndarray, " r"], Float[np.ndarray, " n"], Float[np.ndarray, "r n"]]:
    """Nodes for |x| and n, and their joint weights.

    Gauss-Legendre on panels that shrink towards |x| = 0, where the sign is most uncertain, and the
    trapezium rule in n, which converges geometrically for a Gaussian.
    """
    edges = np.concatenate([[0.0], 12.0 * 2.0 ** np.arange(-20, 1)])
    x, w = np.polynomial.legendre.leggauss(14)
    half = np.diff(edges)[:, None] / 2
    radius = ((edges[:-1, None] + half) + half * x).ravel()
    log_density = (length - 1) * np.log(radius) - radius**2 / 2
    log_density -= (length / 2 - 1) * np.log(2) + gammaln(length / 2)
    radial = (half * w).ravel() * np.exp(log_density)
    n = np.linspace(-9, 9, 241)
    normal = np.exp(-(n**2) / 2)
    return radius, n, radial[:, None] / radial.sum() * (normal / normal.sum())
