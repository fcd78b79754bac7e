"""State evolution of the paper's model on a given quadrature rule, to see what rules do.

The library averages over Sobol points with an error bar. Here the same equations are solved
with the nodes and weights of fixed rules instead, which have no error bar of their own.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from dotphase.model import Model
from dotphase.numerics.crossings import last_fall
from dotphase.numerics.proximal_map import ProxState
from dotphase.numerics.quadrature import Rule
from dotphase.runtime.precision import in_double_precision
from dotphase.theory.overlaps import Overlaps
from dotphase.theory.solve import solve
from dotphase.theory.state_evolution import (
    Averages,
    conjugates,
    initial_prox_state,
    next_overlaps,
    training_energy,
    values_at_points,
)

#: Damping of the iteration, largest relative change at its end, and most iterations.
DAMPING, TOLERANCE, MOST = 0.8, 1e-6, 600


@eqx.filter_jit
def _averages(
    model: Model,
    overlaps: Overlaps,
    nodes: Float[Array, "dims nodes"],
    weights: Float[Array, " nodes"],
    track: ProxState,
    call: Int[Array, ""],
) -> tuple[Averages, ProxState]:
    values, track = values_at_points(model, overlaps, nodes, track, call)
    return jax.tree.map(lambda part: part @ weights, values), track


def _solve(model: Model, alpha: float, overlaps: Overlaps, rule: Rule) -> tuple[Overlaps, float]:
    """Damped iteration on one rule; the overlaps and the training loss where it settles."""
    nodes, weights = jnp.asarray(rule.points), jnp.asarray(rule.weights)
    track = initial_prox_state(model, overlaps, nodes)
    for call in range(MOST):
        found, track = _averages(model, overlaps, nodes, weights, track, jnp.int32(call))
        found = Averages(*(np.asarray(part) for part in found))
        new = next_overlaps(model, conjugates(model, alpha, overlaps, found))
        changes = [
            np.max(np.abs(np.asarray(a) - b)) / np.max(np.abs(b))
            for a, b in zip(new, overlaps, strict=True)
            if np.max(np.abs(b)) > 1e-6
        ]
        overlaps = Overlaps(
            *(
                DAMPING * np.asarray(b) + (1 - DAMPING) * a
                for a, b in zip(new, overlaps, strict=True)
            )
        )
        if max(changes) < TOLERANCE:
            break
    return overlaps, float(training_energy(model, alpha, overlaps, found))


@in_double_precision
def rule_alpha_c(model: Model, rule: Rule, near: float, width: float = 0.15) -> float:
    """alpha_c of a quadrature rule: its two training losses cross, within `width` of `near`.

    Parameters
    ----------
    near : float
        Where to look; the branches are started from the library's solutions there.
    width : float
        Relative half-width of the interval that is searched.
    """
    branches = {
        name: solve(model, near, start=name, log2_points=14).overlaps
        for name in ("semantic", "positional")
    }
    alphas = near * np.linspace(1 - width, 1 + width, 7)
    gaps = []
    for alpha in alphas[::-1]:
        losses = {}
        for name, start in branches.items():
            branches[name], losses[name] = _solve(model, float(alpha), start, rule)
        gaps.append(losses["semantic"] - losses["positional"])
    gap = np.array(gaps[::-1])
    fall = last_fall(alphas, gap)
    return fall.position if fall else float("nan")
