"""Value, gradient and Hessian of the loss of one sentence in its projected tokens.

Softmax attention has closed forms (`dotphase.numerics.softmax_derivatives`,
`dotphase.numerics.untied_softmax_derivatives`), which a test compares with automatic
differentiation. All other students and losses are differentiated automatically.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dotphase.model.attention import softmax_attention, untied_attention
from dotphase.model.definition import Model
from dotphase.numerics.attention_derivatives import (
    Rows,
    tied_attention_derivatives,
    untied_attention_derivatives,
)
from dotphase.numerics.golden_section import golden_section_prox
from dotphase.numerics.linalg import UNROLL_LIMIT, Entries, dot, parts
from dotphase.numerics.proximal_map import ExplicitProx, Minimizer
from dotphase.numerics.softmax_derivatives import Row, softmax_derivatives
from dotphase.numerics.taylor import Derivatives, differentiate
from dotphase.numerics.untied_softmax_derivatives import untied_derivatives

Differentiated = Callable[[Entries, Any], Derivatives]


def loss_derivatives(model: Model) -> Differentiated:
    """Make the function ``(X, T) -> Derivatives`` of ``ell(X; T)`` for a model.

    X is flattened over tokens and rank, an array or a tuple of its entries. For correlated tokens X
    are the fields of the independent tokens of which they are mixtures. A loss with kinks has an
    explicit minimizer (`dotphase.numerics.proximal_map.ExplicitProx`).
    """
    if model.loss is not None or model.correlation is not None:
        return channel_loss(model, model.mixer)
    if model.student is untied_attention and model.length > 1:
        return lambda x, target: untied_loss(x, target, jnp.asarray(model.rho))
    if has_closed_form(model.student, model.length, model.student_rank):
        return lambda x, target: softmax_loss(x, target, jnp.asarray(model.rho))
    return by_autodiff(model)


def has_closed_form(student: object, length: int, rank: int) -> bool:
    """True if a student is softmax attention of two or more tokens."""
    return length > 1 and is_softmax_attention(student, length, rank)


def channel_loss(model: Model, mixer: Float[Array, "tokens tokens"] | None) -> Differentiated:
    """Derivatives of a loss of mixed fields, by automatic differentiation."""

    def loss(x: Array, target: Any) -> Array:
        fields = x.reshape(model.length, -1)
        return model.energy(fields if mixer is None else mixer @ fields, target)

    def derivatives(x: Entries, target: Any) -> Derivatives:
        return differentiate(lambda z: loss(z, target), x)

    if model.proximal is None:
        return derivatives
    return ExplicitProx(derivatives, _minimizer(model, loss, mixer))


def _minimizer(
    model: Model, loss: Callable[[Array, Any], Array], mixer: Float[Array, "tokens tokens"] | None
) -> Minimizer:
    """The model's proximal map of flattened, independent fields."""
    if model.proximal == "search":
        return golden_section_prox(loss)

    def minimizer(omega: Array, V: Array, target: Any) -> Array:
        shape = (model.length, model.student_rank)
        if mixer is None:
            return model.proximal(omega.reshape(shape), V, target).reshape(-1)
        mix = jnp.kron(mixer, jnp.eye(model.student_rank))
        mixed = (mix @ omega).reshape(shape)
        mixed_x = model.proximal(mixed, mix @ V @ mix.T, target).reshape(-1)
        return jnp.linalg.solve(mix, mixed_x)

    return minimizer


def by_autodiff(model: Model) -> Differentiated:
    """Derivatives of ``ell(X; T)`` for any student."""

    def derivatives(x: Entries, target: Array) -> Derivatives:
        return differentiate(lambda z: model.energy(z.reshape(model.length, -1), target), x)

    return derivatives


def softmax_loss(
    x: Entries, target: Float[Array, "tokens tokens"], rho: Float[Array, " tokens"]
) -> Derivatives:
    """``ell`` for ``S = softmax(X X^T)``."""
    if len(x) > UNROLL_LIMIT:
        return tied_attention_derivatives(x, len(target), _all_rows(target, rho))
    return softmax_derivatives(x, len(target), _row_losses(target, rho))


def untied_loss(
    x: Entries, target: Float[Array, "tokens tokens"], rho: Float[Array, " tokens"]
) -> Derivatives:
    """``ell`` for ``S = softmax(X_Q X_K^T)``."""
    if len(x) > UNROLL_LIMIT:
        return untied_attention_derivatives(x, len(target), _all_rows(target, rho))
    return untied_derivatives(x, len(target), _row_losses(target, rho))


def _row_losses(
    target: Float[Array, "tokens tokens"], rho: Float[Array, " tokens"]
) -> Callable[[int, Sequence[Array]], Row]:
    targets, weights = [parts(row) for row in parts(target)], parts(rho)

    def row(i: int, s: Sequence[Array]) -> Row:
        miss = [entry - target for entry, target in zip(s, targets[i], strict=True)]
        slope = [weight * entry for weight, entry in zip(weights, miss, strict=True)]
        curved = [weight * entry for weight, entry in zip(weights, s, strict=True)]
        diagonal = {(j, j): weight for j, weight in enumerate(weights)}
        return Row(0.5 * dot(slope, miss), slope, curved, diagonal)

    return row


def _all_rows(
    target: Float[Array, "tokens tokens"], rho: Float[Array, " tokens"]
) -> Callable[[Array], Rows]:
    def rows(S: Float[Array, "tokens tokens"]) -> Rows:
        slope = rho * (S - target)
        return Rows(0.5 * jnp.sum(slope * (S - target)), slope, rho * S, rho)

    return rows


def _textbook(h: Float[Array, "tokens rank"]) -> Float[Array, "tokens tokens"]:
    return jax.nn.softmax(h @ h.T, axis=-1)


def is_softmax_attention(student: Any, length: int, rank: int) -> bool:
    """True if a student is certainly ``softmax(h h^T)``.

    This holds for the package's own `softmax_attention` and for functions that JAX traces to the
    operations of ``jax.nn.softmax(h @ h.T, axis=-1)``. Other implementations are not recognized;
    values at sample points prove nothing.
    """
    if student is softmax_attention:
        return True
    h = jax.ShapeDtypeStruct((length, rank), np.float32)
    try:
        return str(jax.make_jaxpr(student)(h)) == str(jax.make_jaxpr(_textbook)(h))
    except Exception:  # A user's function may raise anything for such an input.
        return False
