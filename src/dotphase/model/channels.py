"""Labels and losses of the named models.

A teacher is a function of its fields h and, if the model has them, of standard normal noise z and
of the loadings a of the latent means. A loss and a metric are functions of the student's fields x
and of the label.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erf, ndtr
from jaxtyping import Array, Float

from dotphase.model.attention import softmax_attention

Number = Float[Array, ""]
Strength = Float[Any, ""]


class NoisyField(eqx.Module):
    """``y = h + noise z``, of one token."""

    noise: Strength = eqx.field(converter=np.asarray)

    def __call__(self, h: Float[Array, "1 1"], z: Float[Array, " 1"]) -> Number:
        return h[0, 0] + self.noise * z[0]


class NoisySign(eqx.Module):
    """``y = sign(h + noise z)``, of one token."""

    noise: Strength = eqx.field(converter=np.asarray)

    def __call__(self, h: Float[Array, "1 1"], z: Float[Array, " 1"]) -> Number:
        return jnp.where(h[0, 0] + self.noise * z[0] < 0, -1.0, 1.0)


def squared(x: Float[Array, "1 1"], y: Number) -> Number:
    """``(y - x)^2/2``."""
    return 0.5 * (y - x[0, 0]) ** 2


def squared_error(x: Float[Array, "1 1"], y: Number) -> Number:
    """``(y - x)^2``."""
    return (y - x[0, 0]) ** 2


def logistic(x: Float[Array, "1 1"], y: Number) -> Number:
    """``log(1 + exp(-y x))``."""
    return jnp.logaddexp(0.0, -y * x[0, 0])


def hinge(x: Float[Array, "1 1"], y: Number) -> Number:
    """``max(0, 1 - y x)``."""
    return jnp.maximum(0.0, 1 - y * x[0, 0])


def hinge_proximal(
    omega: Float[Array, "1 1"], V: Float[Array, "1 1"], y: Number
) -> Float[Array, "1 1"]:
    """Proximal map of `hinge`: stay at margins above one, else move by V, at most to the kink."""
    margin = y * omega
    return y * jnp.where(margin > 1, margin, jnp.minimum(margin + V, 1.0))


def absolute(x: Float[Array, "1 1"], y: Number) -> Number:
    """``|y - x|``."""
    return jnp.abs(y - x[0, 0])


def absolute_proximal(
    omega: Float[Array, "1 1"], V: Float[Array, "1 1"], y: Number
) -> Float[Array, "1 1"]:
    """Proximal map of `absolute`: move by V towards the label, at most to the label."""
    return omega + jnp.clip(y - omega, -V, V)


def wrong_sign(x: Float[Array, "1 1"], y: Number) -> Number:
    """One if the student's sign is not the label, else zero."""
    return jnp.where(y * x[0, 0] > 0, 0.0, 1.0)


class Intensity(eqx.Module):
    """``y = h^2 + noise z``, of one token."""

    noise: Strength = eqx.field(converter=np.asarray)

    def __call__(self, h: Float[Array, "1 1"], z: Float[Array, " 1"]) -> Number:
        return h[0, 0] ** 2 + self.noise * z[0]


def intensity_loss(x: Float[Array, "1 1"], y: Number) -> Number:
    """``(y - x^2)^2/2``."""
    return 0.5 * (y - x[0, 0] ** 2) ** 2


def intensity_error(x: Float[Array, "1 1"], y: Number) -> Number:
    """``(y - x^2)^2``."""
    return (y - x[0, 0] ** 2) ** 2


def committee(h: Float[Array, "1 units"]) -> Number:
    """``sum_k erf(h_k/sqrt 2)/sqrt K``, of one token."""
    return jnp.sum(erf(h[0] / np.sqrt(2))) / np.sqrt(h.shape[1])


class NoisyCommittee(eqx.Module):
    """The output of a committee, with noise."""

    noise: Strength = eqx.field(converter=np.asarray)

    def __call__(self, h: Float[Array, "1 units"], z: Float[Array, " 1"]) -> Number:
        return committee(h) + self.noise * z[0]


def committee_loss(x: Float[Array, "1 units"], y: Number) -> Number:
    """``(y - f(x))^2/2`` with a committee f."""
    return 0.5 * (y - committee(x)) ** 2


def committee_error(x: Float[Array, "1 units"], y: Number) -> Number:
    """``(y - f(x))^2``."""
    return (y - committee(x)) ** 2


class Attention(eqx.Module):
    """``softmax(beta h h^T)`` row by row, averaged over heads, with a causal mask if requested."""

    beta: Strength = eqx.field(converter=np.asarray)  #: inverse temperature
    #: blocks of columns of equal size, each with a softmax of its own
    heads: int = eqx.field(static=True, default=1)
    causal: bool = eqx.field(static=True, default=False)  #: True if later tokens are masked

    def __call__(self, h: Float[Array, "tokens rank"]) -> Float[Array, "tokens tokens"]:
        def head(own: Float[Array, "tokens columns"]) -> Float[Array, "tokens tokens"]:
            score = jnp.asarray(self.beta) * (own @ own.T)
            if self.causal:
                score = jnp.where(jnp.tril(jnp.ones(score.shape, bool)), score, -jnp.inf)
            return jax.nn.softmax(score, axis=-1)

        heads = [head(own) for own in jnp.split(h, self.heads, axis=1)]
        return sum(heads[1:], start=heads[0]) / self.heads


class Mixture(eqx.Module):
    """``(1 - omega) S(h) + omega A``: any attention mixed with a fixed matrix."""

    #: Ranges of the numbers, see `dotphase.model.parameter_values`.
    ranges: ClassVar = {"omega": (0.0, 1.0)}

    attention: Callable[[Float[Array, "tokens rank"]], Float[Array, "tokens tokens"]]
    omega: Strength = eqx.field(converter=np.asarray)
    mixing: Float[np.ndarray, "tokens tokens"]

    def __call__(self, h: Float[Array, "tokens rank"]) -> Float[Array, "tokens tokens"]:
        return (1 - self.omega) * self.attention(h) + self.omega * self.mixing


class Chosen(eqx.Module):
    """For each token, one token drawn with the probabilities of its row of an attention matrix.

    A standard normal number per row gives the uniform number of the draw.
    """

    attention: Mixture

    def __call__(
        self, h: Float[Array, "tokens rank"], z: Float[Array, " tokens"]
    ) -> Float[Array, "tokens tokens"]:
        edges = jnp.cumsum(self.attention(h), axis=1)[:, :-1]
        number = jnp.sum(ndtr(z)[:, None] > edges, axis=1)
        return jax.nn.one_hot(number, h.shape[0], dtype=h.dtype)


class Likeliest(eqx.Module):
    """For each token, the token of the largest entry in its row of an attention matrix."""

    attention: Mixture

    def __call__(self, h: Float[Array, "tokens rank"]) -> Float[Array, "tokens tokens"]:
        number = jnp.argmax(self.attention(h), axis=1)
        return jax.nn.one_hot(number, h.shape[0], dtype=h.dtype)


def cross_entropy(x: Float[Array, "tokens rank"], chosen: Float[Array, "tokens tokens"]) -> Number:
    """``-sum_l log S_{l, chosen of l}`` with ``S = softmax(x x^T)``."""
    score = x @ x.T
    return jnp.sum(jax.nn.logsumexp(score, axis=1) - jnp.sum(score * chosen, axis=1))


def chosen_wrongly(x: Float[Array, "tokens rank"], chosen: Float[Array, "tokens tokens"]) -> Number:
    """Mean probability that the student assigns to tokens that were not chosen."""
    return 1 - jnp.sum(softmax_attention(x) * chosen) / x.shape[0]


class ChosenToken(eqx.Module):
    """``y = h_s + noise z``: the field of the token s that the hidden variable chooses."""

    noise: Strength = eqx.field(converter=np.asarray)

    def __call__(
        self, h: Float[Array, "tokens 1"], z: Float[Array, " 1"], a: Float[Array, "tokens 1"]
    ) -> Number:
        return jnp.dot(a[:, 0], h[:, 0]) + self.noise * z[0]


def attention_pooling(x: Float[Array, "tokens 2"]) -> Number:
    """``softmax(x_key) . x_value``: the second column holds the keys, the first the values."""
    return jnp.dot(jax.nn.softmax(x[:, 1]), x[:, 0])


def linear_pooling(x: Float[Array, "tokens 2"]) -> Number:
    """``x_key . x_value/L``: linear attention."""
    return jnp.mean(x[:, 0] * x[:, 1])


def affine_pooling(x: Float[Array, "tokens 2"]) -> Number:
    """``(1 + x_key) . x_value/L``: linear attention with a bias."""
    return jnp.mean(x[:, 0] * (1 + x[:, 1]))


def mean_pooling(x: Float[Array, "tokens 1"]) -> Number:
    """The sum of the fields of all tokens."""
    return jnp.sum(x[:, 0])


@dataclass(frozen=True)
class Offset:
    """A pooling minus a threshold."""

    pooling: str
    threshold: float

    def __call__(self, x: Float[Array, "tokens columns"]) -> Number:
        pooled: Number = POOLINGS[self.pooling](x) - self.threshold
        return pooled


POOLINGS = {
    "attention_pooling": attention_pooling,
    "linear_pooling": linear_pooling,
    "affine_pooling": affine_pooling,
    "mean_pooling": mean_pooling,
}


class PooledLoss(eqx.Module):
    """``factor (y - f(x))^2`` with a pooling f of the tokens."""

    pooling: Callable[[Any], Number] = eqx.field(static=True)
    factor: float = eqx.field(static=True, default=0.5)

    def __call__(self, x: Float[Array, "tokens columns"], y: Number) -> Number:
        return self.factor * (y - self.pooling(x)) ** 2


class PooledLogistic(eqx.Module):
    """Logistic loss of a pooling of the tokens."""

    pooling: Callable[[Any], Number] = eqx.field(static=True)

    def __call__(self, x: Float[Array, "tokens columns"], y: Number) -> Number:
        return jnp.logaddexp(0.0, -y * self.pooling(x))


class PooledSign(eqx.Module):
    """One if the sign of a pooling is not the label, else zero."""

    pooling: Callable[[Any], Number] = eqx.field(static=True)

    def __call__(self, x: Float[Array, "tokens columns"], y: Number) -> Number:
        return jnp.where(y * self.pooling(x) > 0, 0.0, 1.0)


def shifted_or_not(h: Float[Array, "tokens t"], a: Float[Array, "tokens 1"]) -> Number:
    """One if the hidden variable shifts a token, else minus one."""
    return jnp.where(jnp.any(a != 0), 1.0, -1.0)
