"""The proximal map of a loss of one field, with or without kinks, by golden-section search."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from dotphase.numerics.proximal_map import Minimizer

#: Grid points of the first search, and number of golden sections after it.
GRID_POINTS, CUTS = 65, 40


def golden_section_prox(loss: Callable[[Array, Any], Array]) -> Minimizer:
    """Make the proximal map of a loss of one field, which may have kinks.

    At the minimum ``(X - omega)^2/(2 V)`` is at most the loss at omega. The best point of a grid on
    this interval is refined by golden sections between its neighbors. The derivative of the map is
    a finite difference.
    """
    golden = (np.sqrt(5) - 1) / 2

    @jax.custom_jvp
    def minimizer(omega: Array, V: Array, data: Any) -> Array:
        def objective(x: Array) -> Array:
            return 0.5 * (x - omega[0]) ** 2 / V[0, 0] + loss(x[None], data)

        reach = jnp.sqrt(2 * V[0, 0] * loss(omega, data)) * (1 + 1e-9)
        grid = omega[0] + reach * jnp.linspace(-1.0, 1.0, GRID_POINTS)
        best = grid[jnp.argmin(jax.vmap(objective)(grid))]
        step = 2 * reach / (GRID_POINTS - 1)

        def cut(_: Any, ends: tuple[Array, Array]) -> tuple[Array, Array]:
            low, high = ends
            left, right = high - golden * (high - low), low + golden * (high - low)
            lower = objective(left) < objective(right)
            return jnp.where(lower, low, left), jnp.where(lower, right, high)

        low, high = jax.lax.fori_loop(0, CUTS, cut, (best - step, best + step))
        return ((low + high) / 2)[None]

    @minimizer.defjvp
    def slope(primals: Any, tangents: Any) -> tuple[Array, Array]:
        omega, V, data = primals
        step = 1e-4 * jnp.sqrt(V[0, 0])
        ahead, behind = (minimizer(omega + sign * step, V, data) for sign in (1.0, -1.0))
        return minimizer(*primals), (ahead - behind) / (2 * step) * tangents[0]

    return minimizer
