"""The Bayes-optimal learner of deep attention: one overlap for each layer.

With ``Q* ~ N(0, I)``, layers that are independent, and the overlap M_l between the best estimate of
Q*_l and Q*_l, the fields of a layer are ``z_l = omega_l + V_l^{1/2} u_l`` with their estimate
``omega_l ~ N(0, M_l)`` and ``V_l = 1 - M_l``. The attention S_K of the last layer determines
``w = B_{K-1} z_K`` up to its sign (`dotphase.model.deep`), so that the posterior of the fields is

    p(z | w) = sum_+- prod_l N(z_l; omega_l, V_l) / |det B_{K-1}|,   z_K = +- B_{K-1}^{-1} w.

The last layer and its sign are summed exactly, the others by importance sampling from their
Gaussian distributions. The overlaps obey

    M_l = s_l/(1 + s_l),   s_l = alpha/V_l E|E[u_l | omega, w]|^2,

and a small overlap of a layer that is not learned is multiplied by
``alpha E|E[z_l z_l^T | w] - 1|^2`` in one step. Layers without overlap do not mix: the posterior is
even in their fields.

The square of a mean is estimated by the product of two independent means. The remaining bias is
inversely proportional to the number of samples. It is extrapolated from two numbers of samples, and
the extrapolation counts as an error. With three layers it exceeds the overlaps of the lower two
above alpha = 1: they are not determined. A label that is the product B_K has no Bayes line: it does
not determine w.
"""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.optimize import brentq

from dotphase.config import validation
from dotphase.config.formatting import Description, format_value
from dotphase.errors import InvalidInput
from dotphase.model.channels import Mixture
from dotphase.model.deep import DeepAttention
from dotphase.model.definition import Model, refuse, refuse_spectrum
from dotphase.model.validation import name_of
from dotphase.numerics.fixed_point import FixedPoint, Iteration, fixed_point
from dotphase.numerics.quadrature import normal_points
from dotphase.numerics.statistics import error_of_mean
from dotphase.runtime.precision import in_double_precision
from dotphase.storage.results import Result
from dotphase.theory.posterior_error import test_error_at

#: log2 of the number of sentences in one repetition, and number of repetitions.
LOG2_SENTENCES, REPEATS = 11, 4
#: Sobol points of the same seed serve other averages: this number sets the sentences apart. Keys of
#: the samples differ by more than the number of repetitions from one seed to the next.
SENTENCE_STREAM, KEY_STRIDE = 5, 1000
#: Samples of the lower layers for each sentence; number of sentences that are treated at once.
SAMPLES, BATCH = 256, 16
#: First overlaps; overlaps below which a layer counts as not learned; the smallest overlaps of the
#: iteration, from which layers grow once those above them are learned.
INITIAL, LEAST, FLOOR = 0.05, 1e-3, 1e-4
#: Grid of log(1 - M) of the last layer on which thresholds of the other layers are bracketed.
LOG_REMAINING = 0.5 * np.arange(-0.2, -14, -1)
#: Standard error above which an overlap is not determined.
MAX_ERROR = 0.2
#: Keeps weights that underflow from dividing by zero.
TINY = 1e-300
ITERATION = Iteration(tolerance=1e-3, floor=3e-3, step=1.0, max_steps=100)

Layers = Float[np.ndarray, " layers"]


@dataclass(frozen=True, eq=False, repr=False)
class LayeredBayes(Result):
    """The Bayes-optimal learner of deep attention at one sample complexity.

    Attributes
    ----------
    alpha : sentences per dimension
    overlaps, overlaps_stderr : M_l of each layer, from 0 (no information) to 1 (Q*_l is recovered),
        with standard errors that include the bias of the posterior. Above `MAX_ERROR` an overlap is
        not determined, with a warning: those of the lower two of three layers above alpha = 1
    test_error, stderr : of the posterior mean, with its quadrature standard error
    converged : True if the equations were solved

    Examples
    --------
    >>> best = dp.bayes.optimal(dp.load_model("deep-attention"), alpha=0.4)
    >>> best.overlaps[0] < 0.01 < 0.4 < best.overlaps[1]
    True
    """

    alpha: float
    overlaps: tuple[float, ...]
    overlaps_stderr: tuple[float, ...]
    test_error: float
    stderr: float
    converged: bool

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, ready for JSON."""
        return asdict(self)

    @property
    def description(self) -> Description:
        """The overlap of each layer and the test error."""
        rows = [
            (f"overlap of layer {layer}", format_value(*value))
            for layer, value in enumerate(zip(self.overlaps, self.overlaps_stderr, strict=True), 1)
        ]
        error = ("test error", format_value(self.test_error, self.stderr))
        return Description(f"Bayes-optimal at alpha = {self.alpha:g}", (*rows, error))


def deep_teacher(model: Model) -> DeepAttention | None:
    """The deep attention that determines the labels of a model, or None."""
    teacher = model.teacher
    if isinstance(teacher, Mixture) and float(teacher.omega) < 1:
        teacher = teacher.attention
    return teacher if isinstance(teacher, DeepAttention) else None


@in_double_precision
def layered_bayes(model: Model, alpha: float, seed: int) -> LayeredBayes:
    """Solve for the Bayes-optimal overlaps of each layer, from small ones as in message passing."""
    _check(model)
    samples = [Sample(model, seed, repeat) for repeat in range(REPEATS)]
    points = [_solve(samples[0], alpha, np.full(model.teacher_rank, INITIAL))]
    points += [_solve(sample, alpha, points[0].x) for sample in samples[1:]]
    ends = np.stack([np.where(point.x > LEAST, point.x, 0.0) for point in points])
    biased = _solve(samples[0], alpha, points[0].x, extrapolate=False).x
    overlaps, errors = np.mean(ends, axis=0), np.hypot(error_of_mean(ends), biased - points[0].x)
    if any(errors > MAX_ERROR):
        layers = ", ".join(map(str, 1 + np.flatnonzero(errors > MAX_ERROR)))
        text = f"overlaps of layers {layers} are not determined at alpha = {alpha:g}"
        warnings.warn(f"{text}: samples of the posterior are too few", stacklevel=5)
    test_error, stderr = test_error_at(model, overlaps, seed)
    return LayeredBayes(
        alpha=alpha,
        overlaps=tuple(overlaps.tolist()),
        overlaps_stderr=tuple(errors.tolist()),
        test_error=test_error,
        stderr=stderr,
        converged=all(point.outcome.success for point in points),
    )


@in_double_precision
def layer_thresholds(
    model: Model, *, seed: int = 0, log2_sentences: int = LOG2_SENTENCES - 1
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Sample complexities at which the layers of deep attention are first learned, and errors.

    The last layer is learned first, at ``1/E|E[z_K z_K^T | w] - 1|^2``. The others follow where the
    overlap of the last layer at that sample complexity makes their multiplier 1; each is treated as
    if it were the next one. A layer that is never learned has an infinite threshold. A threshold
    that so few sentences do not determine is NaN, with a warning.

    Examples
    --------
    >>> model = dp.load_model("deep-attention")
    >>> alphas, errors = dp.bayes.layer_thresholds(model, log2_sentences=8)
    >>> alphas[0] > alphas[1]
    True
    """
    _check(model)
    log2_sentences = validation.integer("log2_sentences", log2_sentences, at_least=8, at_most=20)
    validation.integer("seed", seed, at_least=0)
    samples = [Sample(model, seed, repeat, log2_sentences) for repeat in range(REPEATS)]
    thresholds = np.stack([_thresholds(sample) for sample in samples])
    if np.isnan(thresholds).any():
        warnings.warn("a threshold is not determined: increase log2_sentences", stacklevel=3)
    bias = _thresholds(samples[0], extrapolate=False) - thresholds[0]
    errors = np.hypot(error_of_mean(thresholds), bias)
    return tuple(np.mean(thresholds, axis=0).tolist()), tuple(errors.tolist())


def _thresholds(sample: Sample, extrapolate: bool = True) -> Layers:
    """Thresholds on one sample of sentences: infinite if never learned, NaN if not determined."""
    unlearned = np.zeros(sample.layers)
    _, spread = sample.information(unlearned, extrapolate)
    # The extrapolated averages of few sentences may be negative.
    alone = 1 / np.where(spread > 0, spread, np.nan)

    @cache
    def at(log_remaining: float) -> tuple[float, Layers]:
        """Alpha where the last layer has an overlap, and the multipliers of all layers there."""
        last = -np.expm1(log_remaining)
        gain, spread = sample.information(np.append(unlearned[:-1], last), extrapolate)
        alpha = last / (1 - last) / (gain[-1] if gain[-1] > 0 else np.nan)
        return alpha, alpha * spread

    def threshold(layer: int) -> float:
        def excess(log_remaining: float) -> float:
            return float(at(log_remaining)[1][layer]) - 1

        # An excess that is NaN ends the search, too.
        first = next((k for k, x in enumerate(LOG_REMAINING) if not excess(x) <= 0), None)
        if first is None:
            return np.inf
        if np.isnan(excess(LOG_REMAINING[first])):
            return np.nan
        if first == 0:  # It is learned before the last layer.
            return float(alone[layer])
        return at(brentq(excess, *LOG_REMAINING[[first, first - 1]], xtol=1e-3))[0]

    return np.array([*map(threshold, range(sample.layers - 1)), alone[-1]])


class Sample:
    """Sentences of one repetition, and the random numbers of their posteriors."""

    def __init__(
        self, model: Model, seed: int, repeat: int, log2_sentences: int = LOG2_SENTENCES
    ) -> None:
        self.layers = model.teacher_rank
        (sequence,) = np.random.SeedSequence([seed, SENTENCE_STREAM, repeat]).spawn(1)
        shape = (2, model.length, self.layers)
        rng = np.random.default_rng(sequence)
        points = normal_points(int(np.prod(shape)), 2**log2_sentences, rng)
        self._points = jnp.asarray(points.reshape(-1, *shape))
        teacher = deep_teacher(model)
        assert teacher is not None
        self._arguments = DeepAttention(jnp.asarray(teacher.skip)), jnp.asarray(model.sigma)
        self._key = jax.random.PRNGKey(KEY_STRIDE * seed + repeat)

    def information(self, overlaps: Layers, extrapolate: bool = True) -> tuple[Layers, Layers]:
        """Average over the sentences, with the bias extrapolated to many samples.

        Returns ``E|E[u_l | omega, w]|^2/V_l`` and ``E|E[u_l u_l^T | omega, w] - 1|^2/V_l^2``.
        """
        full, half = np.asarray(
            _averages(*self._arguments, jnp.asarray(overlaps), self._points, self._key)
        )
        gain, spread = (2 * full - half if extrapolate else full).T
        return gain / (1 - overlaps), spread / (1 - overlaps) ** 2


def _solve(sample: Sample, alpha: float, start: Layers, extrapolate: bool = True) -> FixedPoint:
    """Iterate the equations of the overlaps on one sample of sentences."""

    def step(overlaps: Layers) -> Layers:
        s = alpha * np.maximum(sample.information(overlaps, extrapolate)[0], 0.0)
        return np.maximum(s / (1 + s), FLOOR)

    return fixed_point(
        step,
        start,
        scale=lambda overlaps: np.maximum(np.minimum(overlaps, 1 - overlaps), LEAST),
        admissible=lambda overlaps: bool(np.all((overlaps >= FLOOR) & (overlaps < 1))),
        settings=ITERATION,
    )


@jax.jit
def _averages(
    teacher: DeepAttention,
    sigma: Float[Array, " tokens"],
    overlaps: Float[Array, " layers"],
    points: Float[Array, "sentences 2 tokens layers"],
    key: Array,
) -> Float[Array, "2 layers 2"]:
    """Squared means of u and of u u^T - 1 per layer, from all samples and from halves of them."""
    sentences = points, jax.random.split(key, len(points))
    each = partial(_sentence, teacher, sigma, overlaps)
    return jnp.mean(jax.lax.map(each, sentences, batch_size=BATCH), axis=0)


def _sentence(
    teacher: DeepAttention,
    sigma: Float[Array, " tokens"],
    overlaps: Float[Array, " layers"],
    sentence: tuple[Float[Array, "2 tokens layers"], Array],
) -> Float[Array, "2 layers 2"]:
    """Squared posterior means of one sentence, as in `_averages`."""
    point, key = sentence
    tokens, layers = point.shape[1:]
    omega, deviation = jnp.sqrt(overlaps) * point[0], jnp.sqrt(1 - overlaps)
    w = teacher.hidden(sigma[:, None] * (omega + deviation * point[1]))
    normal = jax.random.normal(key, (SAMPLES // 2, tokens, layers - 1))
    # Samples of either sign leave layers without overlap exactly without gain.
    below = jnp.stack([normal, -normal], axis=1).reshape(SAMPLES, tokens, layers - 1)

    def weigh(u: Float[Array, "tokens layers-1"]) -> tuple[Array, Array]:
        """Fields in units of their deviations, for both signs of z_K, and log weights."""
        B = teacher.stack(sigma[:, None] * (omega[:, :-1] + deviation[:-1] * u))
        z, log_determinant = _solve_small(B, w)
        signs = jnp.asarray([1.0, -1.0])[:, None]
        last = (signs * z / sigma - omega[:, -1]) / deviation[-1]
        both = jnp.concatenate([jnp.stack([u, u]), last[:, :, None]], axis=2)
        return both, -0.5 * jnp.sum(last**2, axis=1) - log_determinant

    fields, log_weight = jax.vmap(weigh)(below)
    weight = jnp.exp(log_weight - jnp.max(log_weight))
    squares = fields[..., :, None, :] * fields[..., None, :, :] - jnp.eye(tokens)[..., None]
    values = jnp.concatenate([fields, squares.reshape(SAMPLES, 2, -1, layers)], axis=2)
    sums = jnp.einsum("qns,qnskl->qkl", *(x.reshape(4, -1, *x.shape[1:]) for x in (weight, values)))
    total = jnp.sum(weight.reshape(4, -1), axis=1)[:, None, None] + TINY
    quarters, halves = sums / total, (sums[::2] + sums[1::2]) / (total[::2] + total[1::2])
    pairs = quarters[0] * quarters[1] + quarters[2] * quarters[3]
    products = jnp.stack([halves[0] * halves[1], pairs / 2])
    squared = (jnp.sum(part, axis=1) for part in (products[:, :tokens], products[:, tokens:]))
    return jnp.stack([*squared], axis=2)


def _solve_small(
    B: Float[Array, "tokens tokens"], w: Float[Array, " tokens"]
) -> tuple[Float[Array, " tokens"], Float[Array, ""]]:
    """``B^{-1} w`` and ``log |det B|``; entry by entry for two tokens, which is faster."""
    if len(w) > 2:
        return jnp.linalg.solve(B, w), jnp.linalg.slogdet(B)[1]
    determinant = B[0, 0] * B[1, 1] - B[0, 1] * B[1, 0]
    z = jnp.stack([B[1, 1] * w[0] - B[0, 1] * w[1], B[0, 0] * w[1] - B[1, 0] * w[0]])
    return z / determinant, jnp.log(jnp.abs(determinant))


def _check(model: Model) -> None:
    refuse_spectrum(model, "the Bayes-optimal line")
    refuse(model, "the Bayes-optimal line", "latent", "noise", "correlation")
    teacher = deep_teacher(model)
    if teacher is None or teacher.product:
        rule = "must be DeepAttention that returns its last layer: products have no Bayes line"
        raise InvalidInput("teacher", name_of(model.teacher), rule)
