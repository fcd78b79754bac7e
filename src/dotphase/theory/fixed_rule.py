"""State evolution of a model on a fixed quadrature rule.

`dotphase.solve` averages over scrambled Sobol points and measures its error. A fixed rule has no
error bar; solving the same equations on it shows the bias of the rule.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from dotphase.model import Model
from dotphase.numerics.proximal_map import ProxState
from dotphase.numerics.quadrature import Rule
from dotphase.runtime.precision import in_double_precision
from dotphase.theory.overlaps import Overlaps
from dotphase.theory.state_evolution import (
    Averages,
    conjugates,
    initial_prox_state,
    next_overlaps,
    training_energy,
    values_at_points,
)

#: Overlaps below this size do not count in the relative change.
NEGLIGIBLE = 1e-6


@eqx.filter_jit
def _averages(
    model: Model,
    overlaps: Overlaps,
    nodes: Float[Array, "dims nodes"],
    weights: Float[Array, " nodes"],
    state: ProxState,
    call: Int[Array, ""],
) -> tuple[Averages, ProxState]:
    values, state = values_at_points(model, overlaps, nodes, state, call)
    return jax.tree.map(lambda part: part @ weights, values), state


@in_double_precision
def solve_on_rule(
    model: Model,
    alpha: float,
    start: Overlaps,
    rule: Rule,
    *,
    damping: float = 0.8,
    tolerance: float = 1e-6,
    max_iterations: int = 600,
) -> tuple[Overlaps, float]:
    """Solve state evolution on a fixed quadrature rule by damped iteration.

    Parameters
    ----------
    model, alpha : as for `dotphase.solve`
    start : Overlaps
        Overlaps close to the fixed point, such as those of a `Solution`.
    rule : Rule
        Points and weights of an average over ``length (student_rank + teacher_rank)`` standard
        normal variables, as from `gauss_hermite`.
    damping : float
        Fraction of the old overlaps in the new ones.
    tolerance : float
        Largest relative change of an overlap in the last iteration.

    Returns
    -------
    Overlaps, float
        The overlaps and the training loss at the end.

    Examples
    --------
    >>> model = dp.positional_semantic()
    >>> start = dp.solve(model, 2.0, log2_points=12).overlaps
    >>> rule = dp.analysis.gauss_hermite(8, 4)
    >>> overlaps, loss = dp.analysis.solve_on_rule(model, 2.0, start, rule, tolerance=1e-3)
    >>> 0.003 < loss < 0.004
    True
    """
    nodes, weights = jnp.asarray(rule.points), jnp.asarray(rule.weights)
    overlaps, state = start, initial_prox_state(model, start, nodes)
    for call in range(max_iterations):
        means, state = _averages(model, overlaps, nodes, weights, state, jnp.int32(call))
        means = Averages(*(np.asarray(part) for part in means))
        new = next_overlaps(model, conjugates(model, alpha, overlaps, means))
        pairs = [(np.asarray(a), np.asarray(b)) for a, b in zip(new, overlaps, strict=True)]
        changes = [
            np.max(np.abs(a - b)) / np.max(np.abs(b))
            for a, b in pairs
            if np.max(np.abs(b)) > NEGLIGIBLE
        ]
        overlaps = Overlaps(*(damping * b + (1 - damping) * a for a, b in pairs))
        if max(changes) < tolerance:
            break
    return overlaps, float(training_energy(model, alpha, overlaps, means))
