"""The transformer: one attention layer, LayerNorm, one hidden layer; and how to constrain it.

A token is the sum of an embedding of its symbol and one of its position, ``z_i = t_{x_i} + p_i``,
and attention has no residual connection beside it:

    A = softmax(z Q K^T z^T / sqrt(dimension)),   a = A z V,
    logits = W2 relu(W1 LayerNorm(a) + b1) + b2.

A constrained network is the same network with parts of its parameters held at zero: symbols are
embedded in the first half of the dimension and positions in the second, and query and key read
only one half. So a constrained solution is a point of the unconstrained parameter space, and
lifting the constraint needs no translation.

Everything is float32: the losses of interest are far above its rounding, and it is what the
published experiment used.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, NamedTuple, ParamSpec, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from dotphase.config import validation
from dotphase.errors import InvalidInput
from dotphase.runtime.precision import use_precision

#: What query and key may read; a free network reads everything.
MECHANISMS = ("semantic", "positional")
FREE = "free"

#: Added to the variance in LayerNorm.
SMALL = 1e-5

#: Parameters and results are arrays of JAX while a function is compiled, of NumPy outside.
Anything = Any

P = ParamSpec("P")
R = TypeVar("R")


def in_single_precision(function: Callable[P, R]) -> Callable[P, R]:
    """Run `function` in float32, with products in float32 too where a GPU would shorten them."""

    @wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        with use_precision(np.float32), jax.default_matmul_precision("float32"):
            return function(*args, **kwargs)

    return wrapped


class Network(eqx.Module):
    """Parameters of the transformer; a leading axis, where there is one, is over runs.

    Examples
    --------
    >>> network = dp.histogram.shipped("semantic")
    >>> network.symbols, network.length, network.tokens.shape
    (15, 10, (15, 64))
    """

    tokens: Float[Anything, "symbols dimension"]
    positions: Float[Anything, "length dimension"]
    query: Float[Anything, "dimension dimension"]
    key: Float[Anything, "dimension dimension"]
    value: Float[Anything, "dimension dimension"]
    norm_scale: Float[Anything, " dimension"]
    norm_shift: Float[Anything, " dimension"]
    hidden_weight: Float[Anything, "dimension hidden"]
    hidden_bias: Float[Anything, " hidden"]
    output_weight: Float[Anything, "hidden classes"]
    output_bias: Float[Anything, " classes"]

    @property
    def symbols(self) -> int:
        return self.tokens.shape[-2]

    @property
    def length(self) -> int:
        return self.positions.shape[-2]


class Constraint(NamedTuple):
    """Which coordinates symbols, positions, and query and key may use: ones and zeros."""

    tokens: Float[Anything, " dimension"]
    positions: Float[Anything, " dimension"]
    attention: Float[Anything, " dimension"]


class Output(NamedTuple):
    """What the network gives for a batch of sequences."""

    logits: Float[Anything, "batch length classes"]
    attention: Float[Anything, "batch length length"]


def initialise(
    key: Array, symbols: int, length: int, dimension: int = 64, hidden: int = 128
) -> Network:
    """Random parameters: embeddings N(0, 1), weights uniform in ±1/sqrt(inputs).

    These are PyTorch's conventions, which distances from the start depend on.
    """
    keys = jax.random.split(key, 9)

    def uniform(index: int, shape: tuple[int, ...], inputs: int) -> Array:
        bound = inputs**-0.5
        return jax.random.uniform(keys[index], shape, jnp.float32, -bound, bound)

    square = (dimension, dimension)
    classes = length + 1
    return Network(
        tokens=jax.random.normal(keys[0], (symbols, dimension), jnp.float32),
        positions=jax.random.normal(keys[1], (length, dimension), jnp.float32),
        query=uniform(2, square, dimension),
        key=uniform(3, square, dimension),
        value=uniform(4, square, dimension),
        norm_scale=jnp.ones(dimension, jnp.float32),
        norm_shift=jnp.zeros(dimension, jnp.float32),
        hidden_weight=uniform(5, (dimension, hidden), dimension),
        hidden_bias=uniform(6, (hidden,), dimension),
        output_weight=uniform(7, (hidden, classes), hidden),
        output_bias=uniform(8, (classes,), hidden),
    )


@partial(jax.jit, static_argnums=(1, 2, 3, 4))
def initialise_all(keys: Array, symbols: int, length: int, dimension: int, hidden: int) -> Network:
    """`initialise` for several keys."""
    return jax.vmap(lambda key: initialise(key, symbols, length, dimension, hidden))(keys)


def constraint(mechanism: str, dimension: int = 64) -> Constraint:
    """The constraint that imposes a mechanism; ``free`` imposes none."""
    validation.choice("mechanism", mechanism, (*MECHANISMS, FREE))
    if dimension % 2:
        raise InvalidInput("dimension", dimension, "must be even, to be split in two halves")
    first = np.repeat(np.asarray([1, 0], np.float32), dimension // 2)
    every = np.ones(dimension, np.float32)
    if mechanism == FREE:
        return Constraint(every, every, every)
    return Constraint(first, 1 - first, first if mechanism == "semantic" else 1 - first)


def constrain(network: Network, rule: Constraint) -> Network:
    """The network with everything that the constraint forbids at zero."""
    seen = rule.attention[:, None]
    embedded = (network.tokens * rule.tokens, network.positions * rule.positions)
    return eqx.tree_at(
        lambda some: (some.tokens, some.positions, some.query, some.key),
        network,
        (*embedded, network.query * seen, network.key * seen),
    )


@jax.jit
def constrain_all(networks: Network, rules: Constraint) -> Network:
    """`constrain` for networks and constraints with a leading axis."""
    return jax.vmap(constrain)(networks, rules)


def apply(network: Network, sequences: Int[Array, "batch length"]) -> Output:
    """Logits of the counts, and the attention matrices, of a batch of sequences.

    With symbols + length different rows in all, ``z Q K^T z^T`` and ``z V`` are worked out
    once for every row and pair of rows. What is left for a token is to pick from these
    tables, which is done by products with ones and zeros: their derivatives are products again.
    """
    symbols, length = network.symbols, network.length
    dimension = network.value.shape[-1]
    batch = sequences.shape[0]
    chosen = jax.nn.one_hot(sequences, symbols, dtype=network.tokens.dtype)
    rows = jnp.concatenate([network.tokens, network.positions])
    pairs = (rows @ network.query) @ (rows @ network.key).T / np.float32(dimension**0.5)
    values = rows @ network.value
    # Row i of the pairs that token i has with every symbol and every position.
    reach = (chosen.reshape(-1, symbols) @ pairs[:symbols]).reshape(batch, length, -1)
    reach = reach + pairs[symbols:]
    scores = jnp.einsum("bis,bjs->bij", reach[..., :symbols], chosen) + reach[..., symbols:]
    attention = jax.nn.softmax(scores, axis=-1)
    on_symbols = jnp.einsum("bij,bjs->bis", attention, chosen).reshape(-1, symbols)
    mixed = on_symbols @ values[:symbols] + attention.reshape(-1, length) @ values[symbols:]
    normed = layer_norm(mixed) * network.norm_scale + network.norm_shift
    hidden = jax.nn.relu(normed @ network.hidden_weight + network.hidden_bias)
    logits = hidden @ network.output_weight + network.output_bias
    return Output(logits.reshape(batch, length, -1), attention)


def layer_norm(x: Float[Array, "n dimension"]) -> Float[Array, "n dimension"]:
    """Each row with mean 0 and variance 1."""
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred * jax.lax.rsqrt((centred**2).mean(axis=-1, keepdims=True) + SMALL)


def distance(first: Network, second: Network) -> Float[np.ndarray, "..."]:
    """Euclidean distance over all parameters; over a leading axis of runs where there is one."""
    return np.sqrt((_tensor_distances(first, second) ** 2).sum(axis=0))


def summed_distance(first: Network, second: Network) -> Float[np.ndarray, "..."]:
    """The Euclidean distances of the eleven parameter arrays, added up.

    This is what the numbers called distances in arXiv:2402.03902 are; it is larger than `distance`.
    """
    return _tensor_distances(first, second).sum(axis=0)


def _tensor_distances(first: Network, second: Network) -> np.ndarray:
    distances = []
    for a, b, ndim in zip(jax.tree.leaves(first), jax.tree.leaves(second), _NDIM, strict=True):
        square = (np.asarray(a, np.float64) - np.asarray(b, np.float64)) ** 2
        distances.append(np.sqrt(square.sum(axis=tuple(range(-ndim, 0)))))
    return np.stack(distances)


#: Axes of each parameter without the one over runs, in the order of the fields.
_NDIM = (2, 2, 2, 2, 2, 1, 1, 2, 1, 2, 1)


def select(network: Network, run: int) -> Network:
    """One of several networks that share a leading axis.

    Examples
    --------
    >>> result = dp.histogram.run("both", 1, 1, task=dp.histogram.Task(samples=200), dimension=8)
    >>> dp.histogram.select(result.trained.networks, 1).query.shape
    (8, 8)
    """
    return jax.tree.map(lambda leaf: np.asarray(leaf[run]), network)
