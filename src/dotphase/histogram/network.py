"""The transformer (one attention layer, LayerNorm, one hidden layer) and its constraints.

A token is the sum of an embedding of its symbol and one of its position, ``z_i = t_{x_i} + p_i``,
and attention has no residual connection:

    A = softmax(z Q K^T z^T / sqrt(dimension)),   a = A z V,
    logits = W2 relu(W1 LayerNorm(a) + b1) + b2.

A constrained network is the same network with parts of its parameters held at zero: symbols are
embedded in the first half of the dimension and positions in the second, and query and key read
only one half. A constrained solution is therefore a point of the unconstrained parameter space,
and lifting the constraint changes no parameter.

All numbers are float32, as in the published experiment; the losses are far above its rounding.
"""

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

#: Constraints of query and key: they read only symbols or only positions.
MECHANISMS = ("semantic", "positional")
#: Name of the empty constraint.
FREE = "free"

#: Constant added to the variance in LayerNorm.
EPSILON = 1e-5

#: Arrays of JAX in compiled functions, of NumPy elsewhere.
AnyArray = Any

P = ParamSpec("P")
R = TypeVar("R")


def in_single_precision(function: Callable[P, R]) -> Callable[P, R]:
    """Run `function` in float32, without the shorter products of a GPU."""

    @wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        with use_precision(np.float32), jax.default_matmul_precision("float32"):
            return function(*args, **kwargs)

    return wrapped


class Network(eqx.Module):
    """Parameters of the transformer; several networks share a leading axis over runs.

    Examples
    --------
    >>> network = dp.histogram.shipped("semantic")
    >>> network.symbols, network.length, network.tokens.shape
    (15, 10, (15, 64))
    """

    tokens: Float[AnyArray, "symbols dimension"]
    positions: Float[AnyArray, "length dimension"]
    query: Float[AnyArray, "dimension dimension"]
    key: Float[AnyArray, "dimension dimension"]
    value: Float[AnyArray, "dimension dimension"]
    norm_scale: Float[AnyArray, " dimension"]
    norm_shift: Float[AnyArray, " dimension"]
    hidden_weight: Float[AnyArray, "dimension hidden"]
    hidden_bias: Float[AnyArray, " hidden"]
    output_weight: Float[AnyArray, "hidden classes"]
    output_bias: Float[AnyArray, " classes"]

    @property
    def symbols(self) -> int:
        """Number of symbols."""
        return self.tokens.shape[-2]

    @property
    def length(self) -> int:
        """Number of tokens in a sequence."""
        return self.positions.shape[-2]


class Constraint(NamedTuple):
    """Masks (1 or 0) of the coordinates that symbols, positions, and query and key may use."""

    tokens: Float[AnyArray, " dimension"]
    positions: Float[AnyArray, " dimension"]
    attention: Float[AnyArray, " dimension"]


class Output(NamedTuple):
    """Logits and attention matrices of a batch of sequences."""

    logits: Float[AnyArray, "batch length classes"]
    attention: Float[AnyArray, "batch length length"]


def initialize(
    key: Array, symbols: int, length: int, dimension: int = 64, hidden: int = 128
) -> Network:
    """Draw parameters: embeddings N(0, 1), weights uniform in ±1/sqrt(inputs).

    These are PyTorch's conventions; distances from the initialization depend on them.
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
def initialize_all(keys: Array, symbols: int, length: int, dimension: int, hidden: int) -> Network:
    """Initialize one network for each key."""
    return jax.vmap(lambda key: initialize(key, symbols, length, dimension, hidden))(keys)


def constraint(mechanism: str, dimension: int = 64) -> Constraint:
    """Return the constraint that imposes a mechanism; ``free`` imposes none."""
    validation.choice("mechanism", mechanism, (*MECHANISMS, FREE))
    if dimension % 2:
        raise InvalidInput("dimension", dimension, "must be even, to be split in two halves")
    first_half = np.repeat(np.asarray([1, 0], np.float32), dimension // 2)
    if mechanism == FREE:
        return Constraint(*[np.ones(dimension, np.float32)] * 3)
    attention = first_half if mechanism == "semantic" else 1 - first_half
    return Constraint(first_half, 1 - first_half, attention)


def constrain(network: Network, masks: Constraint) -> Network:
    """Set all parameters to zero that a constraint forbids."""
    readable = masks.attention[:, None]
    embeddings = (network.tokens * masks.tokens, network.positions * masks.positions)
    return eqx.tree_at(
        lambda network: (network.tokens, network.positions, network.query, network.key),
        network,
        (*embeddings, network.query * readable, network.key * readable),
    )


@jax.jit
def constrain_all(networks: Network, constraints: Constraint) -> Network:
    """Constrain networks that share a leading axis with their constraints."""
    return jax.vmap(constrain)(networks, constraints)


def apply(network: Network, sequences: Int[Array, "batch length"]) -> Output:
    """Compute logits of the counts and attention matrices for a batch of sequences.

    Tokens have only symbols + length different embeddings, so ``z Q K^T z^T`` and ``z V`` are
    tables over these rows. Entries are picked by products with one-hot vectors, whose derivatives
    are products again.
    """
    symbols, length = network.symbols, network.length
    dimension = network.value.shape[-1]
    batch = sequences.shape[0]
    one_hot = jax.nn.one_hot(sequences, symbols, dtype=network.tokens.dtype)
    rows = jnp.concatenate([network.tokens, network.positions])
    pairs = (rows @ network.query) @ (rows @ network.key).T / np.float32(dimension**0.5)
    values = rows @ network.value
    # Scores of token i with every symbol and every position.
    partial_scores = (one_hot.reshape(-1, symbols) @ pairs[:symbols]).reshape(batch, length, -1)
    partial_scores = partial_scores + pairs[symbols:]
    scores = jnp.einsum("bis,bjs->bij", partial_scores[..., :symbols], one_hot)
    scores = scores + partial_scores[..., symbols:]
    attention = jax.nn.softmax(scores, axis=-1)
    on_symbols = jnp.einsum("bij,bjs->bis", attention, one_hot).reshape(-1, symbols)
    mixed = on_symbols @ values[:symbols] + attention.reshape(-1, length) @ values[symbols:]
    normed = layer_norm(mixed) * network.norm_scale + network.norm_shift
    hidden = jax.nn.relu(normed @ network.hidden_weight + network.hidden_bias)
    logits = hidden @ network.output_weight + network.output_bias
    return Output(logits.reshape(batch, length, -1), attention)


def layer_norm(x: Float[Array, "n dimension"]) -> Float[Array, "n dimension"]:
    """Normalize each row to mean 0 and variance 1."""
    centered = x - x.mean(axis=-1, keepdims=True)
    return centered * jax.lax.rsqrt((centered**2).mean(axis=-1, keepdims=True) + EPSILON)


def distance(first: Network, second: Network) -> Float[np.ndarray, "..."]:
    """Euclidean distance over all parameters, for each run."""
    return np.sqrt((_tensor_distances(first, second) ** 2).sum(axis=0))


def summed_distance(first: Network, second: Network) -> Float[np.ndarray, "..."]:
    """Sum of the Euclidean distances of the eleven parameter arrays.

    It is the distance reported in arXiv:2402.03902, and larger than `distance`.
    """
    return _tensor_distances(first, second).sum(axis=0)


def _tensor_distances(first: Network, second: Network) -> np.ndarray:
    """Euclidean distance of each parameter array."""
    distances = []
    for a, b, ndim in zip(jax.tree.leaves(first), jax.tree.leaves(second), _NDIM, strict=True):
        square = (np.asarray(a, np.float64) - np.asarray(b, np.float64)) ** 2
        distances.append(np.sqrt(square.sum(axis=tuple(range(-ndim, 0)))))
    return np.stack(distances)


#: Axes of each parameter without the one over runs, in the order of the fields.
_NDIM = (2, 2, 2, 2, 2, 1, 1, 2, 1, 2, 1)


def select(network: Network, run: int) -> Network:
    """Return one of several networks that share a leading axis.

    Examples
    --------
    >>> small = {"task": dp.histogram.Task(samples=200), "dimension": 8}
    >>> result = dp.histogram.run("both", runs=1, epochs=1, **small)
    >>> dp.histogram.select(result.trained.networks, 1).query.shape
    (8, 8)
    """
    return jax.tree.map(lambda leaf: np.asarray(leaf[run]), network)
