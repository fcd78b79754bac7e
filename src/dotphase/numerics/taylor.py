"""Value, gradient and Hessian of a function at a point."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from dotphase.numerics.linalg import Entries


class Derivatives(NamedTuple):
    """Value, gradient and Hessian at one point.

    The gradient is an array or a tuple of its entries, the Hessian an array or a tuple of rows.
    Closed forms return tuples, which compile to faster code (`dotphase.numerics.linalg`).
    """

    value: Float[Array, ""]
    gradient: Entries
    hessian: tuple[tuple[Array, ...], ...] | Float[Array, "dims dims"]


def differentiate(function: Callable[[Array], Array], x: Entries) -> Derivatives:
    """Value, gradient and Hessian of a scalar function, from one pass of autodiff."""

    def slope(z: Array) -> tuple[Array, tuple[Array, Array]]:
        value, gradient = jax.value_and_grad(function)(z)
        return gradient, (value, gradient)

    hessian, (value, gradient) = jax.jacfwd(slope, has_aux=True)(jnp.asarray(x))
    return Derivatives(value, gradient, (hessian + hessian.T) / 2)
