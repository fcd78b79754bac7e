"""Whether the replica-symmetric theory can be trusted at a fixed point.

Two things make it fail. The replicon

    Lambda = spectral radius of
        (M_l) -> (alpha sum_i w_i gamma_{l,i} R_i sum_{k,n} gamma_{k,i} E[G_kn M_n G_kn^T] R_i^T)

with ``G_kn = dg_k/domega_n`` must stay below one, or the minimum found is one of many.
And the proximal map may jump: its mean Jacobian then differs from the response obtained by
integration by parts, and the share that is missing is the weight of the jumps.

The squared response has a heavy tail (the map is steep next to its jumps), so the replicon
is the median of the values that the scrambles give, not the value of their mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dotphase._numerics.linalg import added, dot, entries, solve_symmetric, upper_rows
from dotphase._numerics.prox import Track, over_points
from dotphase.model import Model
from dotphase.model.derivatives import loss_derivatives
from dotphase.theory.evolution import Averages, conjugates, draw_fields, prox_problem, resolvent
from dotphase.theory.overlaps import Overlaps

#: Weight of the jumps above which the theory is not trusted. Finite-d training agrees with
#: the positional branch at omega = .3 down to alpha = .5 (weight .18); on the semantic branch
#: at alpha = 1 (weight .23) gradient descent from Q* stops with theta 4% to 5% off.
LARGEST_JUMP_WEIGHT = 0.2


class Responses(NamedTuple):
    """Averages of the response ``G = dg/domega`` of the proximal map.

    Attributes
    ----------
    jacobian : ``E[G_ll]`` for each token, one row per scramble
    squared : ``E[G_kn (x) G_kn]`` for each pair of tokens, as (r r, r r) matrices
    """

    jacobian: Float[Array, "scrambles tokens r r"]
    squared: Float[Array, "scrambles tokens tokens r*r r*r"]


@dataclass(frozen=True)
class Stability:
    """Verdict on a fixed point.

    Attributes
    ----------
    replicon : below one where replica symmetry is stable
    jump_weight : share of the response carried by jumps of the proximal map, in [0, 1]
    trusted : whether both are small enough
    reason : why not, or that nothing speaks against it
    """

    replicon: float
    jump_weight: float
    trusted: bool
    reason: str


def mean_responses(
    model: Model,
    overlaps: Overlaps,
    points: Float[Array, "dims scrambles*points"],
    scrambles: int,
    track: Track,
) -> Responses:
    """Averages over one block of ``G = V^{-1} (H^{-1} V^{-1} - 1)``, H the prox Hessian."""
    fields = draw_fields(model, overlaps, points)
    problem = prox_problem(overlaps, fields)
    derivatives = loss_derivatives(model)
    length, r = model.length, model.student_rank

    precision = problem.precision
    size = len(precision)

    def response(x: Array, target: Array) -> Any:
        hessian = added(upper_rows(precision), upper_rows(derivatives(x, target).hessian))
        # Computed once: entries of G would otherwise each begin anew.
        hessian = jax.lax.optimization_barrier(hessian)
        if not isinstance(hessian, tuple):
            return precision @ (jnp.linalg.solve(hessian, precision) - jnp.eye(size))
        columns = [solve_symmetric(hessian, precision[k]) for k in range(size)]
        moved = [
            [columns[k][i] - (1.0 if i == k else 0.0) for i in range(size)] for k in range(size)
        ]
        return tuple(tuple(dot(precision[i], moved[k]) for k in range(size)) for i in range(size))

    g = jnp.asarray(over_points(response)(entries(track.x), fields.target))
    g = g.reshape(length, r, length, r, scrambles, -1)
    jacobian = jnp.stack([jnp.mean(g[k, :, k], axis=-1) for k in range(length)])
    squared = jnp.einsum("kalbsn,kcldsn->sklacbd", g, g) / g.shape[-1]
    shape = (scrambles, length, length, r * r, r * r)
    return Responses(jnp.moveaxis(jacobian, -1, 0), squared.reshape(shape))


def spreading(
    model: Model,
    inverse: Float[np.ndarray, "atoms r r"],
    squared: Float[np.ndarray, "scrambles tokens tokens r*r r*r"],
) -> Float[np.ndarray, "scrambles tokens*r*r tokens*r*r"]:
    """How a small disturbance of the fields of every token spreads to all, over alpha."""
    gamma, share = model.eigenvalues, model.eigenweights
    size = model.length * inverse.shape[-1] ** 2
    both = np.stack([np.kron(one, one) for one in inverse])
    # Through the weights of each eigendirection, from the force on token k to token l.
    through = np.einsum("a,la,ka,axy->lkxy", share, gamma, gamma, both)
    mixed = np.einsum("lkxy,sknyz->slxnz", through, squared)
    return mixed.reshape(-1, size, size)


def judge(
    model: Model, alpha: float, overlaps: Overlaps, averages: Averages, response: Responses
) -> Stability:
    """The verdict from the averages at a fixed point."""
    hats = conjugates(model, alpha, overlaps, averages)
    spread = alpha * spreading(model, resolvent(model, hats), np.asarray(response.squared))
    replicon = float(np.median(np.max(np.abs(np.linalg.eigvals(spread)), axis=-1)))
    by_parts = np.einsum("l,lij->ij", model.rho, hats.Vhat)
    smooth = -alpha * np.einsum("l,lij->ij", model.rho, np.mean(response.jacobian, axis=0))
    jumps = float(np.linalg.norm(by_parts - smooth))
    jump_weight = jumps / (jumps + float(np.linalg.norm(smooth)))
    doubts = []
    if not replicon < 1:
        doubts.append(f"replica symmetry is unstable (replicon {replicon:.3f} >= 1)")
    if not jump_weight < LARGEST_JUMP_WEIGHT:
        doubts.append(
            f"jumps of the proximal map carry {jump_weight:.1%} of the response "
            f"(limit {LARGEST_JUMP_WEIGHT:.0%})"
        )
    reason = "; ".join(doubts) or "replicon below 1 and jumps negligible"
    return Stability(replicon, jump_weight, not doubts, reason)
