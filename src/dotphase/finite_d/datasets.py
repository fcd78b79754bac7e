"""Data sets of finite dimension drawn from a model: tokens, teacher weights, positions."""

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

#: Maximum number of sentences drawn at a time.
BLOCK_SIZE = 256
#: Allowed precisions of a data set.
DTYPES = ("float32", "float64")
#: Norms of the teacher: ``Q*^T Q*/d`` is the identity, or that of entries from ``N(0, 1)``.
TEACHER_NORMS = ("fixed", "random")

#: The teacher's weights Q*, and positional encodings with the other directions of means.
TeacherWeights = Float[Array, "d t"]
Positions = Float[Array, "directions d"]


class Dataset(NamedTuple):
    """Sentences, teacher, positional encodings and noise of a data set.

    Attributes
    ----------
    tokens : (n, L, d) sentences, row l of each from ``N(0, Sigma_l)``
    teacher_weights : (d, t) the teacher's Q*, by default with ``Q*^T Q* = d`` times the identity
    positions : (L, d) positional encodings p with the model's Gram matrix; for latent means all
        directions, first those of the encodings if there are any
    noise : (n, k) standard normal numbers behind labels and hidden variables

    Examples
    --------
    >>> data = dp.sample(dp.positional_semantic(), d=40, n=80, key=0)
    >>> data.teacher_weights.shape
    (40, 1)
    """

    tokens: Float[Array, "n tokens d"]
    teacher_weights: TeacherWeights
    positions: Positions
    noise: Float[Array, "n normals"]


def count_sentences(model: Model, alpha: float, d: int) -> int:
    """Return ``n = round(alpha d)``; `InvalidInput` for sizes that make no sense.

    Examples
    --------
    >>> dp.custom_training.count_sentences(dp.positional_semantic(), alpha=1.5, d=40)
    60
    """
    check_model(model)
    validation.integer("d", d, at_least=1)
    if d < model.length:
        rule = f"must be >= the number of tokens {model.length}, to hold their positions"
        raise InvalidInput("d", d, rule)
    if d < model.teacher_rank:
        raise InvalidInput("d", d, f"must be >= the teacher's columns {model.teacher_rank}")
    alpha = validation.number("alpha", alpha, above=0)
    n = round(alpha * d)
    if n < 1:
        rule = f"must give n = round(alpha d) >= 1, so at least {0.5 / d:g} at d = {d}"
        raise InvalidInput("alpha", alpha, rule)
    return n


@in_double_precision
def sample(
    model: Model,
    d: int,
    n: int,
    key: Any,
    dtype: str | np.dtype | type = "float64",
    teacher_norm: str = "fixed",
) -> Dataset:
    """Draw a data set.

    Parameters
    ----------
    model : Model
        Teacher, student and data.
    d : int
        Dimension of a token, at least the sentence length L.
    n : int
        Number of sentences.
    key : int or JAX key
        Seed or key; the same key always gives the same data.
    dtype : {"float64", "float32"}
        Precision of the arrays.
    teacher_norm : {"fixed", "random"}
        Whether ``Q*^T Q*/d`` is the identity, as in the limit of large d, or that of entries from
        ``N(0, 1)``.

    Examples
    --------
    >>> data = dp.sample(dp.positional_semantic(), d=40, n=80, key=0)
    >>> data.tokens.shape
    (80, 2, 40)
    """
    check_model(model)
    n, d = validation.integer("n", n, at_least=1), validation.integer("d", d, at_least=1)
    count_sentences(model, n / d, d)
    dtype = check_dtype(dtype)
    validation.choice("teacher_norm", teacher_norm, TEACHER_NORMS)
    memory_limit.check_batch(
        1, n * model.length * d * dtype.itemsize, memory_limit.available_bytes(), d
    )
    positions = jnp.asarray(position_vectors(model, d), dtype)
    return _draw(model, n, as_key(key), positions, teacher_norm)


def check_dtype(dtype: Any) -> np.dtype:
    """Return `dtype` as float32 or float64; `InvalidInput` for others."""
    try:
        name = np.dtype(dtype).name
    except (TypeError, ValueError):
        name = None
    if dtype is None or name not in DTYPES:
        raise InvalidInput("dtype", dtype, "must be one of " + ", ".join(DTYPES))
    return np.dtype(name)


def draw_dataset(
    model: Model, n: int, key: Array, positions: Positions, teacher_norm: str = "fixed"
) -> Dataset:
    """Draw a data set in compiled code; d and the precision are those of the positions.

    Examples
    --------
    >>> import jax
    >>> model = dp.positional_semantic()
    >>> training = dp.custom_training
    >>> positions = training.position_vectors(model, 40)
    >>> data = training.draw_dataset(model, 80, jax.random.key(0), positions)
    >>> data.tokens.shape
    (80, 2, 40)
    """
    weight_key, token_key = jax.random.split(key)
    weights = draw_teacher(model, weight_key, positions, teacher_norm)
    directions = aligned_directions(model, positions, weights)
    return draw_sentences(model, n, token_key, weights, directions)


def draw_teacher(
    model: Model, key: Array, positions: Positions, teacher_norm: str
) -> TeacherWeights:
    """Draw Q* from ``N(0, 1)``; with the fixed norm, make its columns orthogonal of length sqrt(d).

    The theory is for ``Q*^T Q* = d`` times the identity. The fluctuations of this matrix carry most
    of the noise of trained students.
    """
    weights = jax.random.normal(key, (positions.shape[1], model.teacher_rank), positions.dtype)
    return orthonormalize(weights) if teacher_norm == "fixed" else weights


def orthonormalize(weights: TeacherWeights) -> TeacherWeights:
    """Return weights with ``W^T W/d = 1`` and the span of the first columns of the given ones."""
    gram = jnp.matmul(weights.T, weights, precision="highest") / len(weights)
    factor = jnp.linalg.cholesky(gram)
    return jax.scipy.linalg.solve_triangular(factor, weights.T, lower=True).T


def aligned_directions(model: Model, positions: Positions, weights: TeacherWeights) -> Positions:
    """Add the teacher to the directions of latent means: ``mu_j = ... + c_j Q*^T/sqrt d``."""
    if model.latent is None or model.latent.teacher is None:
        return positions
    teacher = jnp.asarray(model.latent.teacher, weights.dtype) @ weights.T / np.sqrt(len(weights))
    return positions.at[-model.latent.directions :].add(teacher)


def draw_sentences(
    model: Model, n: int, key: Array, weights: TeacherWeights, directions: Positions
) -> Dataset:
    """Draw n sentences for given teacher weights and directions."""
    d, dtype = directions.shape[1], np.dtype(directions.dtype)
    tokens = draw_tokens(model, d, n, key, dtype)
    noise = jnp.zeros((n, 0), dtype)
    if model.normals:

        def draw_noise(index: Array) -> Float[Array, " normals"]:
            noise_key = jax.random.fold_in(jax.random.fold_in(key, index), 1)
            return jax.random.normal(noise_key, (model.normals,), dtype)

        noise = jax.vmap(draw_noise)(jnp.arange(n))
    if model.mixer is not None:
        tokens = jnp.einsum("lk,nkd->nld", model.mixer.astype(dtype), tokens)
    if model.latent is not None:
        loadings = jax.vmap(model.latent.draw)(noise[:, model.noise :]).astype(dtype)
        tokens = tokens + loadings @ directions[-model.latent.directions :]
    return Dataset(tokens, weights, directions, noise)


def token_positions(model: Model, data: Dataset) -> Float[Array, "tokens d"]:
    """Return the positional encodings among the directions; zeros if the model has none."""
    if model.has_positions:
        return data.positions[: model.length]
    return jnp.zeros((model.length, data.positions.shape[1]), data.positions.dtype)


_draw = eqx.filter_jit(draw_dataset)


def draw_tokens(
    model: Model, d: int, n: int, key: Array, dtype: np.dtype
) -> Float[Array, "n tokens d"]:
    """Draw n sentences with independent rows ``x_l ~ N(0, Sigma_l)``, Sigma_l diagonal.

    Each sentence has its own key, so that a larger data set extends a smaller one. Sentences are
    drawn in blocks, because the intermediate results are larger than the tokens.
    """
    scale = jnp.asarray(model.sigma, dtype)[:, None]
    if model.spectrum is not None:
        scale = scale * jnp.sqrt(model.spectrum.along(d)).astype(dtype)

    def draw_sentence(index: Array) -> Float[Array, "tokens d"]:
        return scale * jax.random.normal(jax.random.fold_in(key, index), (model.length, d), dtype)

    # Blocks of equal size, because a smaller last block would be compiled separately.
    n_blocks = -(-n // BLOCK_SIZE)
    size = -(-n // n_blocks)
    return jax.lax.map(draw_sentence, jnp.arange(n_blocks * size), batch_size=size)[:n]


def weighted_product(
    model: Model, left: Float[Array, "d i"], right: Float[Array, "d j"]
) -> Float[Array, "i j"]:
    """Return ``left^T Sigma_1 right/d``, the covariance of the first token's fields."""
    d = left.shape[0]
    if model.spectrum is not None:
        left = left * model.spectrum.along(d)[0].astype(left.dtype)[:, None]
    return model.rho[0] * (left.T @ right) / d


def position_vectors(model: Model, d: int) -> Float[np.ndarray, "directions d"]:
    """Return vectors p_l in R^d whose Gram matrix is the `positions` of the model.

    Parts of latent means along the teacher's columns are left out. The Gram matrix is factored as
    ``F F^T``, and its modes become the first waves of the cosine transform: orthonormal, spread
    over all coordinates, the first one constant. The paper's model thus has
    ``p_1 = -p_2 = (1, ..., 1)/sqrt d``.

    Examples
    --------
    >>> positions = dp.custom_training.position_vectors(dp.positional_semantic(), 40)
    >>> (positions @ positions.T).round(6).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    gram = np.asarray(model.gram)
    if model.latent is not None:
        gram = gram - model.teacher_overlaps @ model.teacher_overlaps.T
    values, vectors = np.linalg.eigh(gram)
    strongest_first = np.argsort(-values, kind="stable")
    factor = (vectors * np.sqrt(np.maximum(values, 0.0)))[:, strongest_first]
    # The sign of an eigenvector is arbitrary: make its first non-zero entry positive.
    first = np.argmax(np.abs(factor) > 1e-9 * (1 + np.abs(factor).max()), axis=0)
    factor = factor * np.where(factor[first, np.arange(factor.shape[1])] < 0, -1.0, 1.0)
    mode, site = np.arange(len(gram))[:, None], np.arange(d)[None, :]
    waves = np.sqrt(np.where(mode == 0, 1.0, 2.0) / d) * np.cos(np.pi * mode * (site + 0.5) / d)
    return np.asarray(factor @ waves)
