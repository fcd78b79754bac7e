"""Baselines without attention, fitted to the data sets that attention is trained on.

- ``linear``: ``f(x) = W x`` with W in R^{L x L}, which mixes tokens by position alone. Ridge
  regression in closed form; its test error is exact.
- ``perceptron``: two layers on the concatenated tokens, ``f(x) = B relu(A vec(x) + a) + b``,
  trained by Adam on the same loss. It can represent any map, but has of order d^2 parameters and
  only n L d training labels.
- ``positions``: a perceptron of the positional encodings alone, whose output is a matrix that mixes
  the tokens, ``f(x) = W(p) x``.
- ``positional``: attention between the positional encodings alone, ``f(x) = S(p Q/sqrt d) x``.
- ``kernel``: ridge regression with the Gaussian kernel ``exp(-|x - x'|^2/(2 L d sigma^2))`` of the
  concatenated tokens. The penalty is the best of several on held-out sentences.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from dotphase.config import validation
from dotphase.finite_d.datasets import Dataset, count_sentences, draw_tokens, sample
from dotphase.finite_d.linear_layer import linear_layer, mixing_moments
from dotphase.finite_d.loss import project
from dotphase.finite_d.prng_keys import Purpose
from dotphase.finite_d.test_error import linear_error, quadrature
from dotphase.model.definition import Model, refuse
from dotphase.model.linear_layer import linear_test_error
from dotphase.numerics.proximal_map import vmap_points
from dotphase.numerics.statistics import error_if_known
from dotphase.runtime.precision import in_double_precision
from dotphase.storage.results import Result

#: Smallest number of hidden units of a perceptron.
MIN_UNITS = 256
#: Number of full-batch Adam steps.
STEPS = 300
#: Step size at the smallest width.
LR = 3e-3
#: Number of steps of baselines on the encodings, which are cheap.
ENCODING_STEPS = 3000
#: Fresh sentences for the test error where it has no closed form.
HELD_OUT = 1024
#: Candidate penalties of kernel regression.
PENALTIES = (1e-3, 1e-2, 1e-1, 1.0, 10.0)


class Fitted(NamedTuple):
    """Errors of one fitted baseline."""

    train_error: Float[Array, ""]
    test_error: Float[Array, ""]


@dataclass(frozen=True, eq=False, repr=False)
class Baseline(Result):
    """A baseline fitted to several data sets.

    Attributes
    ----------
    kind : name of the baseline
    alpha, d, n : sentences per dimension, dimension and number of sentences
    train_error, test_error : mean of ``|y - f|^2/(d L)`` over runs, on the training data and
        on fresh data
    stderr : standard error of the mean test error; None for a single run
    limit : limit of the test error of the linear layer at large d; None for others
    runs : (training error, test error) of every run
    seconds : wall time

    Examples
    --------
    >>> linear = dp.baseline(dp.positional_semantic(), alpha=2.0, d=40, seeds=2)
    >>> linear.kind
    'linear'
    """

    kind: str
    alpha: float
    d: int
    n: int
    train_error: float
    test_error: float
    stderr: float | None
    limit: float | None
    runs: tuple[tuple[float, float], ...] = field(repr=False)
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Return the fields in the types of JSON."""
        return {**vars(self), "runs": [list(run) for run in self.runs]}


@in_double_precision
def baseline(
    model: Model,
    alpha: float,
    d: int,
    kind: str = "linear",
    *,
    seeds: int = 4,
    seed: int = 0,
    teacher_norm: str = "fixed",
) -> Baseline:
    """Fit a baseline to data sets of ``n = round(alpha d)`` sentences.

    Parameters
    ----------
    model : Model
        Teacher and data; the student is not used.
    alpha, d : float, int
        Sentences per dimension, and dimension of a token.
    kind : {"linear", "positions", "positional", "perceptron", "kernel"}
        Name of the baseline.
    seeds : int
        Number of data sets; data set k is that of run k of `train`.
    seed : int
        Root seed.
    teacher_norm : {"fixed", "random"}
        As in `train`.

    Examples
    --------
    >>> linear = dp.baseline(dp.positional_semantic(), alpha=2.0, d=40, seeds=2)
    >>> linear.test_error > 0
    True
    """
    start_time = time.perf_counter()
    refuse(model, "a baseline", "loss", "noise", "latent", "correlation")
    n = count_sentences(model, alpha, d)
    fit = KINDS[validation.choice("kind", kind, KINDS)]
    root = jax.random.key(validation.integer("seed", seed, at_least=0))
    results = []
    for index in range(validation.integer("seeds", seeds, at_least=1)):
        key = jax.random.fold_in(root, index)
        data = sample(model, d, n, key, teacher_norm=teacher_norm)
        fitted = fit(model, data, Purpose.BASELINE.of(key))
        results.append((float(fitted.train_error), float(fitted.test_error)))
    train, test = np.asarray(results).T
    return Baseline(
        kind=kind,
        alpha=float(alpha),
        d=d,
        n=n,
        train_error=float(train.mean()),
        test_error=float(test.mean()),
        stderr=error_if_known(test),
        limit=linear_test_error(model, seed=seed) if kind == "linear" else None,
        runs=tuple(results),
        seconds=time.perf_counter() - start_time,
    )


def labels(model: Model, data: Dataset) -> Float[Array, "n tokens d"]:
    """Return ``y = T x`` for every sentence."""
    target = vmap_points(model.teacher)(project(data.tokens, data.teacher_weights))
    return jnp.einsum("kln,nld->nkd", target, data.tokens)


@eqx.filter_jit
def fit_linear(model: Model, data: Dataset, key: Array) -> Fitted:
    """Fit ridge regression; it is deterministic, so the key is not used."""
    return _measure_mixing(model, data, linear_layer(model, data))


def _measure_mixing(model: Model, data: Dataset, layer: Float[Array, "tokens tokens"]) -> Fitted:
    """Return the errors of ``f(x) = W x``; the test error is exact."""
    residual = labels(model, data) - jnp.einsum("kl,nld->nkd", layer, data.tokens)
    error = linear_error(model, layer, data.teacher_weights, quadrature(model))
    return Fitted(jnp.mean(residual**2), error)


class Perceptron(eqx.Module):
    """Two-layer network ``f(x) = B relu(A x + a) + b``."""

    hidden: eqx.nn.Linear
    output: eqx.nn.Linear

    def __init__(self, inputs: int, units: int, outputs: int, key: Array, dtype: Any) -> None:
        first, second = jax.random.split(key)
        self.hidden = eqx.nn.Linear(inputs, units, key=first, dtype=dtype)
        self.output = eqx.nn.Linear(units, outputs, key=second, dtype=dtype)

    def __call__(self, x: Float[Array, " inputs"]) -> Float[Array, " outputs"]:
        return self.output(jax.nn.relu(self.hidden(x)))


def _adam(
    loss: Callable[[Any], Array], weights: Any, ridge: Any, steps: int, units: int = MIN_UNITS
) -> Any:
    """Minimize a loss plus ``(ridge/2) |weights|^2`` by full-batch Adam.

    The step size is inversely proportional to the width, since the output changes by the sum of the
    changes of all units.
    """
    transform = optax.adam(LR * MIN_UNITS / units)

    def total(weights: Any) -> Array:
        penalty = sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(weights))
        return loss(weights) + 0.5 * ridge * penalty

    def step(carry: tuple[Any, Any], _: None) -> tuple[tuple[Any, Any], None]:
        weights, state = carry
        updates, state = transform.update(jax.grad(total)(weights), state)
        return (eqx.apply_updates(weights, updates), state), None

    return jax.lax.scan(step, (weights, transform.init(weights)), length=steps)[0][0]


@eqx.filter_jit
def fit_perceptron(model: Model, data: Dataset, key: Array) -> Fitted:
    """Fit a perceptron on the loss of the student, ``sum_mu |y - f|^2/(2d)``, with its ridge."""
    weights_key, test_key = jax.random.split(key)
    _, length, d = data.tokens.shape
    targets = labels(model, data)
    # Two units for each input, so that the network can represent every linear map.
    units = max(MIN_UNITS, 2 * length * d)
    network = Perceptron(length * d, units, length * d, weights_key, data.tokens.dtype)

    def residual(network: Perceptron, tokens: Array, targets: Array) -> Array:
        return jax.vmap(lambda x: network(x.ravel()).reshape(x.shape))(tokens) - targets

    def loss(network: Perceptron) -> Array:
        return jnp.sum(residual(network, data.tokens, targets) ** 2) / (2 * d)

    network = _adam(loss, network, model.ridge, STEPS, units)
    tokens = draw_tokens(model, d, HELD_OUT, test_key, data.tokens.dtype)
    test_targets = labels(model, data._replace(tokens=tokens))
    train = residual(network, data.tokens, targets)
    test = residual(network, tokens, test_targets)
    return Fitted(jnp.mean(train**2), jnp.mean(test**2))


def _fit_mixing(
    model: Model, data: Dataset, mixing: Callable[[Any], Float[Array, "tokens tokens"]], start: Any
) -> Fitted:
    """Fit the parameters of a matrix W; the loss depends on moments of the data alone."""
    B, C = mixing_moments(model, data)

    def loss(weights: Any) -> Array:
        W = mixing(weights)
        return jnp.sum(W * (0.5 * W @ C - B))

    return _measure_mixing(model, data, mixing(_adam(loss, start, model.ridge, ENCODING_STEPS)))


@eqx.filter_jit
def fit_positions(model: Model, data: Dataset, key: Array) -> Fitted:
    """Fit a perceptron of the encodings whose output is a matrix."""
    shape = (model.length, model.length)
    encodings = data.positions.ravel()
    network = Perceptron(encodings.size, MIN_UNITS, model.length**2, key, data.tokens.dtype)
    return _fit_mixing(model, data, lambda network: network(encodings).reshape(shape), network)


@eqx.filter_jit
def fit_positional(model: Model, data: Dataset, key: Array) -> Fitted:
    """Fit attention between encodings, from weights of order one along the first of them."""
    d = data.tokens.shape[2]
    first = data.positions[0] * jnp.sqrt(d)
    weights = first[:, None] + 0.1 * jax.random.normal(key, (d, model.student_rank), first.dtype)
    scores = data.positions / jnp.sqrt(d)
    return _fit_mixing(model, data, lambda weights: model.student(scores @ weights), weights)


@eqx.filter_jit
def fit_kernel(model: Model, data: Dataset, key: Array) -> Fitted:
    """Fit kernel ridge regression.

    The penalty has the smallest error on held-out sentences; the test error uses other sentences.
    """
    penalty_key, test_key = jax.random.split(key)
    n, length, d = data.tokens.shape
    x = data.tokens.reshape(n, length * d)
    y = labels(model, data).reshape(n, length * d)
    scale = 2 * d * jnp.sum(jnp.asarray(model.rho))

    def kernel(a: Array, b: Array) -> Array:
        squares = jnp.sum(a**2, 1)[:, None] + jnp.sum(b**2, 1) - 2 * a @ b.T
        return jnp.exp(-squares / scale)

    def fresh(key: Array) -> tuple[Array, Array]:
        tokens = draw_tokens(model, d, HELD_OUT, key, data.tokens.dtype)
        targets = labels(model, data._replace(tokens=tokens))
        return kernel(tokens.reshape(HELD_OUT, -1), x), targets.reshape(HELD_OUT, -1)

    # In high dimension the kernel is nearly the identity, which sets the scale of the penalties.
    values, vectors = jnp.linalg.eigh(kernel(x, x))
    projected = vectors.T @ y

    def error(penalty: Array, rows: Array, targets: Array) -> Array:
        predicted = rows @ (vectors @ (projected / (values + penalty)[:, None]))
        return jnp.mean((targets - predicted) ** 2)

    penalties = jnp.asarray(PENALTIES, x.dtype)
    held_out = fresh(penalty_key)
    errors = jax.lax.map(lambda penalty: error(penalty, *held_out), penalties)
    best = penalties[jnp.argmin(errors)]
    return Fitted(error(best, kernel(x, x), y), error(best, *fresh(test_key)))


#: Baselines by name: ``(model, data, key) -> Fitted``.
KINDS: dict[str, Callable[[Model, Dataset, Array], Fitted]] = {
    "linear": fit_linear,
    "positions": fit_positions,
    "positional": fit_positional,
    "perceptron": fit_perceptron,
    "kernel": fit_kernel,
}
