"""Baselines fitted to the data sets that attention is trained on.

They answer the question what a student without attention would achieve on equal data:

- ``linear``: ``f(x) = W x`` with W in R^{L x L}, mixing tokens by their places alone. Ridge
  regression in closed form; its test error is exact.
- ``perceptron``: two layers on the concatenated tokens, ``f(x) = B relu(A vec(x) + a) + b``,
  trained by Adam on the same loss. It may learn anything, in principle, but has d^2
  parameters to find from n L d numbers.
- ``positions``: a perceptron of the same kind that sees the encodings and nothing else, and answers
  with a matrix that mixes the tokens, ``f(x) = W(p) x``.
- ``positional``: attention that sees the encodings and nothing else, ``f(x) = S(p Q/sqrt d) x``.
- ``kernel``: ridge regression with the Gaussian kernel ``exp(-|x - x'|^2/(2 L d sigma^2))`` of the
  concatenated tokens, its penalty the best of a few on sentences of its own.
"""

from __future__ import annotations

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

#: Least hidden units, full-batch Adam steps and step size of perceptrons.
HIDDEN, STEPS, STEP = 256, 300, 3e-3
#: Steps of what sees the encodings only, which are cheap.
MORE_STEPS = 3000
#: Fresh sentences for the test error where it has no closed form.
HELD_OUT = 1024
#: Penalties that kernel regression chooses from.
PENALTIES = (1e-3, 1e-2, 1e-1, 1.0, 10.0)


class Fitted(NamedTuple):
    """Errors of one fitted baseline."""

    train_error: Float[Array, ""]
    test_error: Float[Array, ""]


@dataclass(frozen=True)
class Baseline:
    """A baseline fitted to several data sets.

    Attributes
    ----------
    kind : which baseline
    alpha, d, n : sentences per dimension, dimension, sentences
    train_error, test_error : mean of ``|y - f|^2/(d L)`` over runs, on the training data and
        on fresh data
    stderr : standard error of the mean test error; None for a single run
    limit : what the test error of the linear layer tends to as d grows; None for others
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
        """Plain numbers, ready for JSON."""
        return {**vars(self), "runs": [list(run) for run in self.runs]}


@in_double_precision
def baseline(
    model: Model, alpha: float, d: int, kind: str = "linear", *, seeds: int = 4, seed: int = 0
) -> Baseline:
    """Fit a baseline to data sets of ``n = round(alpha d)`` sentences.

    Parameters
    ----------
    model : Model
        Teacher and data; the student plays no part.
    alpha, d : float, int
        Sentences per dimension, and dimension of a token.
    kind : {"linear", "positions", "positional", "perceptron", "kernel"}
        Which baseline.
    seeds : int
        Number of data sets; set k is that of run k of `train`.
    seed : int
        Seed of everything random.

    Examples
    --------
    >>> linear = dp.baseline(dp.positional_semantic(), alpha=2.0, d=40, seeds=2)
    >>> linear.test_error > 0
    True
    """
    began = time.perf_counter()
    refuse(model, "a baseline", "loss", "noise", "latent", "correlation")
    n = count_sentences(model, alpha, d)
    fit = KINDS[validation.choice("kind", kind, KINDS)]
    root = jax.random.key(validation.integer("seed", seed, at_least=0))
    results = []
    for number in range(validation.integer("seeds", seeds, at_least=1)):
        key = jax.random.fold_in(root, number)
        data = sample(model, d, n, key)
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
        seconds=time.perf_counter() - began,
    )


def labels(model: Model, data: Dataset) -> Float[Array, "n tokens d"]:
    """``y = T x`` of every sentence."""
    target = vmap_points(model.teacher)(project(data.tokens, data.teacher_weights))
    return jnp.einsum("kln,nld->nkd", target, data.tokens)


@eqx.filter_jit
def fit_linear(model: Model, data: Dataset, key: Array) -> Fitted:
    """Ridge regression; nothing random, so the key is not used."""
    return _of_mixing(model, data, linear_layer(model, data))


def _of_mixing(model: Model, data: Dataset, layer: Float[Array, "tokens tokens"]) -> Fitted:
    """Errors of ``f(x) = W x``; that on fresh data is exact."""
    miss = labels(model, data) - jnp.einsum("kl,nld->nkd", layer, data.tokens)
    error = linear_error(model, layer, data.teacher_weights, quadrature(model))
    return Fitted(jnp.mean(miss**2), error)


class Perceptron(eqx.Module):
    """``f(x) = B relu(A x + a) + b``."""

    hidden: eqx.nn.Linear
    output: eqx.nn.Linear

    def __init__(self, inputs: int, units: int, outputs: int, key: Array, dtype: Any) -> None:
        first, second = jax.random.split(key)
        self.hidden = eqx.nn.Linear(inputs, units, key=first, dtype=dtype)
        self.output = eqx.nn.Linear(units, outputs, key=second, dtype=dtype)

    def __call__(self, x: Float[Array, " inputs"]) -> Float[Array, " outputs"]:
        return self.output(jax.nn.relu(self.hidden(x)))


def _adam(
    loss: Callable[[Any], Array], weights: Any, ridge: Any, steps: int, units: int = HIDDEN
) -> Any:
    """Weights after full-batch Adam on a loss with ``(ridge/2) |weights|^2`` added.

    The wider a network, the more its weights move it together: steps are shorter by its units.
    """
    transform = optax.adam(STEP * HIDDEN / units)

    def total(weights: Any) -> Array:
        penalty = sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(weights))
        return loss(weights) + 0.5 * ridge * penalty

    def step(carry: tuple[Any, Any], _: None) -> tuple[tuple[Any, Any], None]:
        weights, memory = carry
        updates, memory = transform.update(jax.grad(total)(weights), memory)
        return (eqx.apply_updates(weights, updates), memory), None

    return jax.lax.scan(step, (weights, transform.init(weights)), length=steps)[0][0]


@eqx.filter_jit
def fit_perceptron(model: Model, data: Dataset, key: Array) -> Fitted:
    """On the loss of the attention student, ``sum_mu |y - f|^2/(2d)``, ridge included."""
    for_weights, for_test = jax.random.split(key)
    _, length, d = data.tokens.shape
    answers = labels(model, data)
    # Two units for each input, so that every linear map is among what it can be.
    units = max(HIDDEN, 2 * length * d)
    network = Perceptron(length * d, units, length * d, for_weights, data.tokens.dtype)

    def miss(network: Perceptron, tokens: Array, answers: Array) -> Array:
        return jax.vmap(lambda x: network(x.ravel()).reshape(x.shape))(tokens) - answers

    def loss(network: Perceptron) -> Array:
        return jnp.sum(miss(network, data.tokens, answers) ** 2) / (2 * d)

    network = _adam(loss, network, model.ridge, STEPS, units)
    tokens = draw_tokens(model, d, HELD_OUT, for_test, data.tokens.dtype)
    fresh = labels(model, data._replace(tokens=tokens))
    train, test = miss(network, data.tokens, answers), miss(network, tokens, fresh)
    return Fitted(jnp.mean(train**2), jnp.mean(test**2))


def _fit_mixing(
    model: Model, data: Dataset, mixing: Callable[[Any], Float[Array, "tokens tokens"]], start: Any
) -> Fitted:
    """The best of a family of matrices W, by the moments of the data alone."""
    B, C = mixing_moments(model, data)

    def loss(weights: Any) -> Array:
        W = mixing(weights)
        return jnp.sum(W * (0.5 * W @ C - B))

    return _of_mixing(model, data, mixing(_adam(loss, start, model.ridge, MORE_STEPS)))


@eqx.filter_jit
def fit_positions(model: Model, data: Dataset, key: Array) -> Fitted:
    """A perceptron of the encodings that answers with a matrix."""
    shape = (model.length, model.length)
    encodings = data.positions.ravel()
    network = Perceptron(encodings.size, HIDDEN, model.length**2, key, data.tokens.dtype)
    return _fit_mixing(model, data, lambda network: network(encodings).reshape(shape), network)


@eqx.filter_jit
def fit_positional(model: Model, data: Dataset, key: Array) -> Fitted:
    """Attention between encodings; begins with weights of order one along the first of them."""
    d = data.tokens.shape[2]
    first = data.positions[0] * jnp.sqrt(d)
    weights = first[:, None] + 0.1 * jax.random.normal(key, (d, model.student_rank), first.dtype)
    scores = data.positions / jnp.sqrt(d)
    return _fit_mixing(model, data, lambda weights: model.student(scores @ weights), weights)


@eqx.filter_jit
def fit_kernel(model: Model, data: Dataset, key: Array) -> Fitted:
    """Kernel ridge regression; the penalty is the one that does best on held-out sentences, and
    the test error is that on others."""
    first, second = jax.random.split(key)
    n, length, d = data.tokens.shape
    x = data.tokens.reshape(n, length * d)
    y = labels(model, data).reshape(n, length * d)
    scale = 2 * d * jnp.sum(jnp.asarray(model.rho))

    def kernel(a: Array, b: Array) -> Array:
        squares = jnp.sum(a**2, 1)[:, None] + jnp.sum(b**2, 1) - 2 * a @ b.T
        return jnp.exp(-squares / scale)

    def fresh(key: Array) -> tuple[Array, Array]:
        tokens = draw_tokens(model, d, HELD_OUT, key, data.tokens.dtype)
        answers = labels(model, data._replace(tokens=tokens))
        return kernel(tokens.reshape(HELD_OUT, -1), x), answers.reshape(HELD_OUT, -1)

    # Products of many dimensions make the kernel nearly diagonal: penalties are on its scale.
    values, vectors = jnp.linalg.eigh(kernel(x, x))
    inside = vectors.T @ y

    def miss(penalty: Array, rows: Array, answers: Array) -> Array:
        found = rows @ (vectors @ (inside / (values + penalty)[:, None]))
        return jnp.mean((answers - found) ** 2)

    penalties = jnp.asarray(PENALTIES, x.dtype)
    held = fresh(first)
    chosen = penalties[jnp.argmin(jax.lax.map(lambda one: miss(one, *held), penalties))]
    return Fitted(miss(chosen, kernel(x, x), y), miss(chosen, *fresh(second)))


#: Baselines by name: ``(model, data, key) -> Fitted``.
KINDS: dict[str, Callable[[Model, Dataset, Array], Fitted]] = {
    "linear": fit_linear,
    "positions": fit_positions,
    "positional": fit_positional,
    "perceptron": fit_perceptron,
    "kernel": fit_kernel,
}
