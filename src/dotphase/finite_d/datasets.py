"""Data sets of finite dimension drawn from a model: tokens, teacher weights, positions."""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dotphase.config import validation
from dotphase.errors import InvalidInput
from dotphase.finite_d.prng_keys import as_key
from dotphase.model import Model
from dotphase.model.definition import check_model
from dotphase.runtime import memory_limit
from dotphase.runtime.precision import in_double_precision

#: Most sentences drawn at a time.
BLOCK_SIZE = 256
#: Precisions a data set may be drawn in.
DTYPES = ("float32", "float64")


class Dataset(NamedTuple):
    """Sentences and what was drawn with them.

    Attributes
    ----------
    tokens : (n, L, d) sentences, row l of each from ``N(0, Sigma_l)``
    teacher_weights : (d, t) the teacher's Q*, entries from ``N(0, 1)``
    positions : (L, d) positional encodings p with the model's Gram matrix; with latent means all
        directions, those of the encodings first, if there are any
    noise : (n, k) standard normal numbers that labels and hidden variables were drawn from

    Examples
    --------
    >>> data = dp.sample(dp.positional_semantic(), d=40, n=80, key=0)
    >>> data.teacher_weights.shape
    (40, 1)
    """

    tokens: Float[Array, "n tokens d"]
    teacher_weights: Float[Array, "d t"]
    positions: Float[Array, "directions d"]
    noise: Float[Array, "n normals"]


def count_sentences(model: Model, alpha: float, d: int) -> int:
    """``n = round(alpha d)``, after checking that a data set of that size makes sense."""
    check_model(model)
    validation.integer("d", d, at_least=1)
    if d < model.length:
        rule = f"must be >= the number of tokens {model.length}, to hold their positions"
        raise InvalidInput("d", d, rule)
    alpha = validation.number("alpha", alpha, above=0)
    n = round(alpha * d)
    if n < 1:
        rule = f"must give n = round(alpha d) >= 1, so at least {0.5 / d:g} at d = {d}"
        raise InvalidInput("alpha", alpha, rule)
    return n


@in_double_precision
def sample(
    model: Model, d: int, n: int, key: Any, dtype: str | np.dtype | type = "float64"
) -> Dataset:
    """Draw a data set.

    Parameters
    ----------
    model : Model
        Teacher, student and data.
    d : int
        Dimension of a token, at least the length L of a sentence.
    n : int
        Number of sentences.
    key : int or JAX key
        Source of randomness; the same key always gives the same data.
    dtype : {"float64", "float32"}
        Precision of the arrays.

    Examples
    --------
    >>> data = dp.sample(dp.positional_semantic(), d=40, n=80, key=0)
    >>> data.tokens.shape
    (80, 2, 40)
    """
    check_model(model)
    n, d = validation.integer("n", n, at_least=1), validation.integer("d", d, at_least=1)
    count_sentences(model, n / d, d)
    kind = check_dtype(dtype)
    memory_limit.check_batch(
        1, n * model.length * d * kind.itemsize, memory_limit.available_bytes(), d
    )
    return _draw(model, n, as_key(key), jnp.asarray(position_vectors(model, d), kind))


def check_dtype(dtype: Any) -> np.dtype:
    """`dtype` as float32 or float64, or `InvalidInput`."""
    try:
        name = np.dtype(dtype).name
    except (TypeError, ValueError):
        name = None
    if dtype is None or name not in DTYPES:
        raise InvalidInput("dtype", dtype, "must be one of " + ", ".join(DTYPES))
    return np.dtype(name)


def draw_dataset(
    model: Model, n: int, key: Array, positions: Float[Array, "directions d"]
) -> Dataset:
    """`sample` without its checks, for compiled code; takes d and the precision from p."""
    for_weights, for_tokens = jax.random.split(key)
    d, dtype = positions.shape[1], positions.dtype
    weights = jax.random.normal(for_weights, (d, model.teacher_rank), dtype)
    directions = aligned_directions(model, positions, weights)
    return draw_sentences(model, n, for_tokens, weights, directions)


def aligned_directions(
    model: Model, positions: Float[Array, "directions d"], weights: Float[Array, "d t"]
) -> Float[Array, "directions d"]:
    """The directions, once the teacher's weights are known: ``mu_j = ... + c_j Q*^T/sqrt d``."""
    if model.latent is None or model.latent.teacher is None:
        return positions
    along = jnp.asarray(model.latent.teacher, weights.dtype) @ weights.T / np.sqrt(len(weights))
    return positions.at[-model.latent.directions :].add(along)


def draw_sentences(
    model: Model,
    n: int,
    key: Array,
    weights: Float[Array, "d t"],
    directions: Float[Array, "directions d"],
) -> Dataset:
    """n sentences for a teacher and directions that are given."""
    d, dtype = directions.shape[1], np.dtype(directions.dtype)
    tokens = draw_tokens(model, d, n, key, dtype)
    noise = jnp.zeros((n, 0), dtype)
    if model.normals:

        def one(number: Array) -> Float[Array, " normals"]:
            own = jax.random.fold_in(jax.random.fold_in(key, number), 1)
            return jax.random.normal(own, (model.normals,), dtype)

        noise = jax.vmap(one)(jnp.arange(n))
    if model.mixer is not None:
        tokens = jnp.einsum("lk,nkd->nld", model.mixer.astype(dtype), tokens)
    if model.latent is not None:
        loadings = jax.vmap(model.latent.draw)(noise[:, model.noise :]).astype(dtype)
        tokens = tokens + loadings @ directions[-model.latent.directions :]
    return Dataset(tokens, weights, directions, noise)


def token_positions(model: Model, data: Dataset) -> Float[Array, "tokens d"]:
    """The positional encodings among the directions."""
    if model.has_positions:
        return data.positions[: model.length]
    return jnp.zeros((model.length, data.positions.shape[1]), data.positions.dtype)


_draw = eqx.filter_jit(draw_dataset)


def draw_tokens(
    model: Model, d: int, n: int, key: Array, dtype: np.dtype
) -> Float[Array, "n tokens d"]:
    """n sentences with independent rows ``x_l ~ N(0, Sigma_l)``, Sigma_l diagonal.

    Each sentence has a key of its own, so that more sentences extend the same sequence; a
    block at a time is drawn, because the intermediate results are larger than the tokens.
    """
    scale = jnp.asarray(model.sigma, dtype)[:, None]
    if model.spectrum is not None:
        scale = scale * jnp.sqrt(model.spectrum.along(d)).astype(dtype)

    def one(number: Array) -> Float[Array, "tokens d"]:
        return scale * jax.random.normal(jax.random.fold_in(key, number), (model.length, d), dtype)

    # Blocks of one size: a smaller last one would be compiled on its own.
    blocks = -(-n // BLOCK_SIZE)
    each = -(-n // blocks)
    return jax.lax.map(one, jnp.arange(blocks * each), batch_size=each)[:n]


def weighted_product(
    model: Model, left: Float[Array, "d i"], right: Float[Array, "d j"]
) -> Float[Array, "i j"]:
    """``left^T Sigma_1 right/d``, the product that the fields of the first token see."""
    d = left.shape[0]
    if model.spectrum is not None:
        left = left * model.spectrum.along(d)[0].astype(left.dtype)[:, None]
    return model.rho[0] * (left.T @ right) / d


def position_vectors(model: Model, d: int) -> Float[np.ndarray, "directions d"]:
    """Vectors p_l in R^d with ``p_k . p_l`` equal to the model's Gram matrix, less the part that
    lies along the teacher's columns.

    The Gram matrix is factored as ``F F^T`` and its modes are laid along the first waves of
    the cosine transform: orthonormal, spread over all coordinates, and with a constant
    vector first, so that the paper's model gets ``p_1 = -p_2 = (1, ..., 1)/sqrt d``.
    """
    gram = np.asarray(model.gram)
    if model.latent is not None:
        gram = gram - model.known @ model.known.T
    values, vectors = np.linalg.eigh(gram)
    strongest_first = np.argsort(-values, kind="stable")
    factor = (vectors * np.sqrt(np.maximum(values, 0.0)))[:, strongest_first]
    # An eigenvector has no sign of its own: the first entry of weight is made positive.
    heavy = np.argmax(np.abs(factor) > 1e-9 * (1 + np.abs(factor).max()), axis=0)
    factor = factor * np.where(factor[heavy, np.arange(factor.shape[1])] < 0, -1.0, 1.0)
    mode, place = np.arange(len(gram))[:, None], np.arange(d)[None, :]
    waves = np.sqrt(np.where(mode == 0, 1.0, 2.0) / d) * np.cos(np.pi * mode * (place + 0.5) / d)
    return np.asarray(factor @ waves)
