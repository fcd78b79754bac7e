"""The Bayes-optimal learner of any teacher, from samples of fields and labels.

With ``Q* ~ N(0, I)`` and the overlap M between the best estimate of Q* and Q* (t x t, from 0 to 1),
the fields of a sentence, in units of their scales, are ``h_l = omega_l + (1 - M)^{1/2} z_l`` with
``omega_l ~ N(0, M)`` known. A label y sharpens this estimate: with ``u = h - omega`` and V = 1 - M,

    g_l = V^{-1} E[u_l | omega, y],   G = dg/domega = V^{-1} (Cov[u | omega, y] - V) V^{-1},
    qhat = alpha sum_l E[g_l g_l^T],   M = qhat (1 + qhat)^{-1}.

g is a martingale when M grows, so that a change dM of the overlap changes ``sum_l E[g_l g_l^T]`` by
``sum_kl E[G_kl dM G_kl^T]``, and one step multiplies small changes by

    dM -> alpha (1 - M) sum_kl E[G_kl dM G_kl^T] (1 - M).

At M = 0 this is the condition for weak recovery, ``alpha = 1/rho(sum_kl E[G_kl . G_kl^T])`` with
``G = E[h h^T - 1 | y]`` if the mean of h does not depend on y (for one token: Mondelli and
Montanari, arXiv:1708.05932; Barbier et al., arXiv:1708.03395). Where a multiplier exceeds one at a
point that treats hidden units alike, they specialize.

The conditional means are averages over the nearest neighbors of a sentence in (omega, y), among
many sentences. With the mean g of one half of the neighbors, h of the other half, and the own value
u of the sentence,

    E[g g^T] = 2 E[u g^T] - E[g h^T] + E[b b^T],

where noise averages out and the bias b, which neighbors at a distance cause, enters by its
square only. Labels are compared by their ranks: labels that saturate, as those of attention do, are
dense where the fields are large. No likelihood is needed, only the teacher.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float
from scipy.spatial import KDTree
from scipy.special import ndtri
from scipy.stats import rankdata

from dotphase.config import validation
from dotphase.errors import InvalidInput
from dotphase.model.definition import Model, refuse, refuse_spectrum
from dotphase.model.validation import call_many
from dotphase.numerics.statistics import error_of_mean, mean_and_error
from dotphase.runtime.precision import in_double_precision
from dotphase.storage.results import Result
from dotphase.theory.settings import check_alpha

#: log2 of the number of sentences in one repetition, and number of repetitions.
LOG2_POINTS, REPEATS = 16, 4
#: Neighbors in each of the two halves.
NEIGHBORS = 4
#: Labels with fewer different values than this are classes.
CLASSES = 32
#: Iterations, change of the overlap at which they stop, and the largest overlap that is resolved.
STEPS, TOLERANCE, LARGEST = 60, 1e-3, 0.97

Matrix = Float[np.ndarray, "t t"]


class Information(NamedTuple):
    """Averages of the posterior of the fields at one overlap.

    Attributes
    ----------
    gain : ``sum_l E[g_l g_l^T]``
    spread : ``sum_kl E[G_kl (x) G_kl]``, a matrix on t x t matrices
    smeared_spread : the same with its first-order bias, as measured by neighbors alone
    label_error : ``E Var(y | omega)``, the least mean square error of a label (its entries summed)
    """

    gain: Matrix
    spread: Float[np.ndarray, "t*t t*t"]
    smeared_spread: Float[np.ndarray, "t*t t*t"]
    label_error: float


@dataclass(frozen=True, eq=False, repr=False)
class NumericalBayes(Result):
    """The Bayes-optimal learner at one sample complexity, from numerical posteriors.

    Attributes
    ----------
    alpha : sentences per dimension
    overlap : M, t x t, from 0 (no information on Q*) to the unit matrix (Q* is recovered)
    stderr : standard error of its entries
    label_error : least mean square error of the label of a new sentence
    multiplier, multiplier_stderr : largest factor of one step on small changes of the overlap, and
        its standard error; above one, hidden units specialize unless they are kept alike
    converged : True if the iteration settled; False if the overlap is too close to 1

    Examples
    --------
    >>> model = dp.load_model("ridge-regression", noise=0.5)
    >>> best = dp.bayes.numerical(model, alpha=1.0, log2_points=12)
    >>> best.overlap.shape
    (1, 1)
    """

    alpha: float
    overlap: Matrix
    stderr: Matrix
    label_error: float
    multiplier: float
    multiplier_stderr: float
    converged: bool

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and lists, ready for JSON."""
        plain = asdict(self)
        return plain | {"overlap": self.overlap.tolist(), "stderr": self.stderr.tolist()}

    def __str__(self) -> str:
        diagonal = ", ".join(f"{value:.4f}" for value in np.diag(self.overlap))
        return (
            f"Bayes-optimal at alpha = {self.alpha:g}: overlap {diagonal} ± "
            f"{self.stderr.max():.1g}, error of a label {self.label_error:.4g}, "
            f"multiplier {self.multiplier:.3f} ± {self.multiplier_stderr:.1g}"
        )


@in_double_precision
def weak_recovery(
    model: Model, *, seed: int = 0, log2_points: int = LOG2_POINTS + 2
) -> tuple[float, float]:
    """The sample complexity of weak recovery, and its standard error with the posterior's bias.

    Above it the best learner has a positive overlap with Q*. It is zero if the mean of the
    teacher's fields depends on the label.

    Parameters
    ----------
    model : Model
        Its teacher and tokens; the student and its loss do not matter.
    seed : int
        Seed of the sentences.
    log2_points : int
        log2 of the number of sentences in each repetition.

    Examples
    --------
    Phase retrieval without noise, 1/2:

    >>> alpha, error = dp.bayes.weak_recovery(dp.load_model("phase-retrieval"), log2_points=14)
    >>> abs(alpha - 0.5) < 0.1
    True
    """
    _check(model)
    zero = np.zeros((model.teacher_rank, model.teacher_rank))
    repetitions = [information(model, zero, seed, repeat, log2_points) for repeat in range(REPEATS)]
    # At zero overlap E[g g^T] is the squared mean of h given the label.
    means = np.stack([repetition.gain for repetition in repetitions])
    if np.any(np.abs(np.mean(means, axis=0)) > 6 * error_of_mean(means) + 1e-2):
        return 0.0, 0.0
    radii = np.asarray([_radius(repetition.spread) for repetition in repetitions])
    smeared = np.asarray([_radius(repetition.smeared_spread) for repetition in repetitions])
    alpha, error = mean_and_error(1 / radii)
    # Half of the smear is of second order only where the posterior is smooth on the scale of the
    # neighbors' distances, which it is not where labels saturate.
    bias = float(np.mean(1 - smeared / radii)) / 2
    return alpha, float(np.hypot(error, alpha * bias))


@in_double_precision
def numerical_bayes(
    model: Model,
    alpha: float,
    *,
    alike: bool = False,
    seed: int = 0,
    log2_points: int = LOG2_POINTS,
) -> NumericalBayes:
    """Solve for the Bayes-optimal learner of any teacher of few fields.

    The iteration starts from a small overlap, as message passing without side information does.

    Parameters
    ----------
    model : Model
        Its teacher and tokens; the student and its loss do not matter. Neighbors are close in up to
        about four dimensions (fields and label together).
    alpha : float
        Samples per dimension.
    alike : bool
        True for equal estimates of all columns of the teacher, as before they specialize: all
        entries of M are equal.
    seed, log2_points : int
        Seed of the sentences, and log2 of their number in each repetition.

    Examples
    --------
    >>> best = dp.bayes.numerical(dp.load_model("phase-retrieval"), alpha=0.2, log2_points=12)
    >>> best.multiplier < 1
    True
    """
    _check(model)
    alpha = check_alpha(alpha)
    ends = [_settle(model, alpha, seed, repeat, log2_points, alike) for repeat in range(REPEATS)]
    overlaps = np.stack([overlap for overlap, _, _ in ends])
    multiplier, error = mean_and_error(
        [_multiplier(alpha, overlap, info) for overlap, info, _ in ends]
    )
    return NumericalBayes(
        alpha=alpha,
        overlap=np.mean(overlaps, axis=0),
        stderr=error_of_mean(overlaps),
        label_error=float(np.mean([info.label_error for _, info, _ in ends])),
        multiplier=multiplier,
        multiplier_stderr=error,
        converged=all(settled for _, _, settled in ends),
    )


def _check(model: Model) -> None:
    refuse_spectrum(model, "the numerical posterior")
    refuse(model, "the numerical posterior", "latent")
    dims = model.length * model.teacher_rank
    if dims > 6:
        rule = "must have at most 6 fields: neighbors are too far apart in more dimensions"
        raise InvalidInput("teacher_rank", f"{model.teacher_rank}, {model.length} tokens", rule)


def _radius(operator: np.ndarray) -> float:
    """Spectral radius, at least a tiny number."""
    return max(float(np.max(np.abs(np.linalg.eigvals(operator)))), 1e-12)


def _multiplier(alpha: float, overlap: Matrix, info: Information) -> float:
    remaining = np.eye(len(overlap)) - overlap
    return _radius(alpha * np.kron(remaining, remaining) @ info.spread)


def _settle(
    model: Model, alpha: float, seed: int, repeat: int, log2_points: int, alike: bool
) -> tuple[Matrix, Information, bool]:
    """Iterate from a small overlap on one set of sentences."""
    unit = np.eye(model.teacher_rank)
    overlap = 0.05 * (np.full_like(unit, 1 / len(unit)) if alike else unit)
    for _ in range(STEPS):
        info = information(model, overlap, seed, repeat, log2_points)
        hat = alpha * info.gain
        hat = np.full_like(hat, np.mean(hat)) if alike else hat
        values, vectors = np.linalg.eigh((hat + hat.T) / 2)
        positive = np.maximum(values, 0.0)
        new = (vectors * (positive / (1 + positive))) @ vectors.T
        change = float(np.max(np.abs(new - overlap)))
        overlap = 0.3 * overlap + 0.7 * new
        if np.linalg.eigvalsh(overlap)[-1] > LARGEST:
            return overlap, info, False
        if change < TOLERANCE:
            return overlap, info, True
    return overlap, info, False


def information(
    model: Model, overlap: Matrix, seed: int, repeat: int, log2_points: int
) -> Information:
    """Average the posteriors of the fields of many sentences, at one overlap."""
    length, t = model.length, model.teacher_rank
    validation.integer("log2_points", log2_points, at_least=8, at_most=20)
    rng = np.random.default_rng([seed, 4, repeat])
    # Not from a low-discrepancy sequence, whose neighbors avoid each other.
    points = rng.standard_normal((2**log2_points, 2 * length * t + model.normals))
    cut = length * t
    xi, z = (points[:, start : start + cut].reshape(-1, length, t) for start in (0, cut))
    remaining = np.eye(t) - overlap
    omega, noise = xi @ _root(overlap), z @ _root(remaining)
    label = _labels(model, omega + noise, points[:, 2 * cut :])
    other = _labels(model, omega + rng.permutation(noise), rng.permutation(points[:, 2 * cut :]))
    features = _features(omega.reshape(-1, cut), label, np.any(overlap), rng)
    _, neighbors = KDTree(features).query(features, k=2 * NEIGHBORS + 1)
    order = rng.permutation(2 * NEIGHBORS) + 1  # without the sentence itself
    u = noise.reshape(-1, cut)
    inverse = np.kron(np.eye(length), np.linalg.inv(remaining))
    means, covariances = [], []
    for half in np.split(order, 2):
        sample = u[neighbors[:, half]]
        mean = sample.mean(axis=1)
        centered = sample - mean[:, None]
        covariances.append(np.einsum("nki,nkj->nij", centered, centered) / (NEIGHBORS - 1))
        means.append(mean)
    covariances.append(np.einsum("ni,nj->nij", u - means[0], u - means[1]))
    g, h, own = ((mean @ inverse).reshape(-1, length, t) for mean in (*means, u))
    G, H, own_slope = (
        (inverse @ covariance @ inverse - inverse).reshape(-1, length, t, length, t)
        for covariance in covariances
    )

    def mean_product(first: np.ndarray, second: np.ndarray) -> np.ndarray:
        product = np.einsum("nkalb,nkcld->acbd", first, second) / len(u)
        return np.asarray(product.reshape(t * t, t * t))

    smeared = mean_product(G, H)
    gain = np.einsum("nla,nlb->ab", own, g + h) - np.einsum("nla,nlb->ab", g, h)
    mixed = mean_product(own_slope, G + H) + mean_product(G + H, own_slope)
    return Information(
        gain=(gain + gain.T) / 2 / len(u),
        spread=mixed / 2 - smeared,
        smeared_spread=smeared,
        label_error=0.5 * float(np.mean(np.sum((label - other) ** 2, axis=1))),
    )


def _root(matrix: Matrix) -> Matrix:
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)


def _labels(
    model: Model, h: Float[np.ndarray, "n tokens t"], noise: Float[np.ndarray, "n normals"]
) -> Float[np.ndarray, "n entries"]:
    """Labels of many sentences, as rows of numbers.

    The fields h are those of independent tokens. Correlated tokens are mixtures of these.
    """
    labels = call_many(model.label, model.mix(np.asarray(model.sigma)[:, None] * h), noise)
    leaves = [np.asarray(leaf).reshape(len(h), -1) for leaf in jax.tree.leaves(labels)]
    return np.concatenate(leaves, axis=1).astype(np.float64)


def _features(
    omega: Float[np.ndarray, "n fields"],
    label: Float[np.ndarray, "n entries"],
    with_fields: Any,
    rng: np.random.Generator,
) -> Float[np.ndarray, "n dims"]:
    """Coordinates in which similar sentences are neighbors: estimated fields and labels.

    Labels are normal scores of their ranks; classes are far apart.
    """
    columns = []
    for entry in label.T:
        values = np.unique(entry)
        if values.size == 1:
            continue
        if values.size < CLASSES:
            # Noise makes neighbors random among sentences that differ by their class alone.
            columns.append(100.0 * np.searchsorted(values, entry) + 1e-3 * rng.random(len(entry)))
        else:
            columns.append(ndtri((rankdata(entry) - 0.5) / len(entry)))
    parts = np.stack(columns, axis=1) if columns else np.zeros((len(omega), 1))
    return np.concatenate([omega, parts], axis=1) if with_fields else parts
