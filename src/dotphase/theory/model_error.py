"""The error of replica symmetry itself: a cheap estimate of what breaking it would change.

Replica symmetry fails where the proximal map jumps. What a jump takes from the response of the
fields has to be weighed against all that holds V together, the ridge included:

    jumps = | R^{1/2} sum_l sigma_l^2 (E[-dg_l/domega_l] alpha - Vhat_l) R^{1/2} |,

the share of ``R^{-1} = ridge + sum_l sigma_l^2 Vhat_l`` that jumps take away. One step of
breaking gives it back: inside a cluster V is smaller by about that share. The other overlaps
follow as the replica-symmetric map says, ``(1 - J)^{-1}`` times that push on V, which is large
where a branch is about to end. The training loss is stationary and moves in higher order.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from dotphase.model import Model
from dotphase.theory.evolution import Averages, conjugates, resolvent
from dotphase.theory.overlaps import Overlaps
from dotphase.theory.problem import Free, Vector
from dotphase.theory.search import Evaluation, Jacobian
from dotphase.theory.stability import Responses

#: Step of V, relative, by which the response of the norms is measured.
STEP = 1e-3


def jump_share(
    model: Model, alpha: float, overlaps: Overlaps, averages: Averages, response: Responses
) -> float:
    """Share of ``R^{-1}``, the ridge included, that jumps of the proximal map take away."""
    hats = conjugates(model, alpha, overlaps, averages)
    smooth = -alpha * np.mean(np.asarray(response.jacobian), axis=0)
    missing = np.einsum("la,lij->aij", model.eigenvalues, smooth - hats.Vhat)
    shares = np.linalg.norm(resolvent(model, hats) @ missing, axis=(1, 2))
    return float(shares @ model.eigenweights)


def pushed(here: Evaluation, jacobian: Jacobian) -> dict[str, float]:
    """How all results respond to a push on V, per relative reduction of it."""
    problem = here.problem
    assert isinstance(problem, Free)
    squares = problem.coordinates.squares
    push: Vector = np.zeros_like(here.x)
    push[squares : 2 * squares] = -here.x[squares : 2 * squares]
    moved: Float[np.ndarray, " n"] = jacobian.newton(push)
    before, after = problem.norms(here.x), problem.norms(here.x + STEP * moved)
    found = {name: (after[name] - before[name]) / STEP for name in before}
    return found | {"test_error": float(moved[jacobian.free] @ jacobian.test)}
