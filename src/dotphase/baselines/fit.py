"""Baselines fitted to the data sets that attention is trained on.

They answer the question what a student without attention would achieve on equal data:

- ``linear``: ``f(x) = W x`` with W in R^{L x L}, mixing tokens by their places alone. Ridge
  regression in closed form; its test error is exact.
- ``perceptron``: two layers on the concatenated tokens, ``f(x) = B relu(A vec(x) + a) + b``,
  trained by Adam on the same loss. It may learn anything, in principle, but has d^2
  parameters to find from n L d numbers.
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

from dotphase._numerics import validate
from dotphase._numerics.precision import in_double_precision
from dotphase._numerics.prox import over_points
from dotphase._numerics.sampled import error_if_known
from dotphase.finite.data import Dataset, count_sentences, draw_tokens, sample
from dotphase.finite.keys import Purpose
from dotphase.finite.linear import linear_layer, linear_test_error
from dotphase.finite.loss import project
from dotphase.finite.test_error import linear_error, quadrature
from dotphase.model.definition import Model, refuse

#: Hidden units, full-batch Adam steps and step size of the perceptron.
HIDDEN, STEPS, STEP = 256, 300, 3e-3
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
    kind : {"linear", "perceptron", "kernel"}
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
    fit = KINDS[validate.choice("kind", kind, KINDS)]
    root = jax.random.key(validate.whole("seed", seed, at_least=0))
    results = []
    for number in range(validate.whole("seeds", seeds, at_least=1)):
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
    target = over_points(model.teacher)(project(data.tokens, data.teacher_weights))
    return jnp.einsum("kln,nld->nkd", target, data.tokens)


@eqx.filter_jit
def fit_linear(model: Model, data: Dataset, key: Array) -> Fitted:
    """Ridge regression; nothing random, so the key is not used."""
    layer = linear_layer(model, data)
    miss = labels(model, data) - jnp.einsum("kl,nld->nkd", layer, data.tokens)
    error = linear_error(model, layer, data.teacher_weights, quadrature(model))
    return Fitted(jnp.mean(miss**2), error)


class Perceptron(eqx.Module):
    """``f(x) = B relu(A vec(x) + a) + b`` on the concatenated tokens."""

    hidden: eqx.nn.Linear
    output: eqx.nn.Linear

    def __init__(self, inputs: int, units: int, key: Array) -> None:
        first, second = jax.random.split(key)
        self.hidden = eqx.nn.Linear(inputs, units, key=first)
        self.output = eqx.nn.Linear(units, inputs, key=second)

    def __call__(self, x: Float[Array, "tokens d"]) -> Float[Array, "tokens d"]:
        return self.output(jax.nn.relu(self.hidden(x.ravel()))).reshape(x.shape)


@eqx.filter_jit
def fit_perceptron(model: Model, data: Dataset, key: Array) -> Fitted:
    """Full-batch Adam on the loss of the attention student, ridge included:
    ``sum_mu |y - f|^2/(2d) + (ridge/2) |weights|^2``."""
    for_weights, for_test = jax.random.split(key)
    _, length, d = data.tokens.shape
    answers = labels(model, data)
    network = Perceptron(length * d, HIDDEN, for_weights)
    network = jax.tree.map(lambda leaf: leaf.astype(data.tokens.dtype), network)
    transform = optax.adam(STEP)

    def loss(network: Perceptron) -> Array:
        miss = jax.vmap(network)(data.tokens) - answers
        penalty = sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(network))
        return jnp.sum(miss**2) / (2 * d) + 0.5 * model.ridge * penalty

    def step(carry: tuple[Perceptron, Any], _: None) -> tuple[tuple[Perceptron, Any], None]:
        network, memory = carry
        updates, memory = transform.update(jax.grad(loss)(network), memory)
        return (eqx.apply_updates(network, updates), memory), None

    (network, _), _ = jax.lax.scan(step, (network, transform.init(network)), length=STEPS)
    tokens = draw_tokens(model, d, HELD_OUT, for_test, data.tokens.dtype)
    fresh = labels(model, data._replace(tokens=tokens))
    train = jnp.mean((jax.vmap(network)(data.tokens) - answers) ** 2)
    return Fitted(train, jnp.mean((jax.vmap(network)(tokens) - fresh) ** 2))


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
    "perceptron": fit_perceptron,
    "kernel": fit_kernel,
}
