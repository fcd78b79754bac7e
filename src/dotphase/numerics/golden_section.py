"""The proximal map of a loss of one field that may have kinks, by looking along the line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from dotphase.numerics.proximal_map import Minimizer

#: Places looked at, and how often what is left is cut.
PLACES, CUTS = 65, 40


def golden_section_prox(loss: Callable[[Array, Any], Array]) -> Minimizer:
    """The proximal map of a loss of one field, kinks or not, by looking.

    The minimum lies where ``(X - omega)^2/(2 V)`` is at most the loss at omega: the best of
    some places there, then golden sections between its neighbours. Slopes are differences.
    """
    golden = (np.sqrt(5) - 1) / 2

    @jax.custom_jvp
    def minimizer(omega: Array, V: Array, data: Any) -> Array:
        def objective(x: Array) -> Array:
            return 0.5 * (x - omega[0]) ** 2 / V[0, 0] + loss(x[None], data)

        reach = jnp.sqrt(2 * V[0, 0] * loss(omega, data)) * (1 + 1e-9)
        places = omega[0] + reach * jnp.linspace(-1.0, 1.0, PLACES)
        best = places[jnp.argmin(jax.vmap(objective)(places))]
        step = 2 * reach / (PLACES - 1)

        def cut(_: Any, ends: tuple[Array, Array]) -> tuple[Array, Array]:
            low, high = ends
            left, right = high - golden * (high - low), low + golden * (high - low)
            lower = objective(left) < objective(right)
            return jnp.where(lower, low, left), jnp.where(lower, right, high)

        low, high = jax.lax.fori_loop(0, CUTS, cut, (best - step, best + step))
        return ((low + high) / 2)[None]

    @minimizer.defjvp
    def slope(given: Any, moved: Any) -> tuple[Array, Array]:
        omega, V, data = given
        step = 1e-4 * jnp.sqrt(V[0, 0])
        ahead, behind = (minimizer(omega + sign * step, V, data) for sign in (1.0, -1.0))
        return minimizer(*given), (ahead - behind) / (2 * step) * moved[0]

    return minimizer
