"""Estimate the error of replica symmetry: the effect of breaking it.

Replica symmetry fails where the proximal map jumps. Jumps reduce the stiffness
``R^{-1} = ridge + sum_l sigma_l^2 Vhat_l`` by the share

    jumps = | R sum_l sigma_l^2 (smooth_l - Vhat_l) |,   smooth_l = -alpha E[dg_l/domega_l].

One step of symmetry breaking (`dotphase.theory.one_rsb`) restores it: inside a cluster of minima V
is smaller by about .8 times that share, within a sixth for shares above .05 (26 points, nearly all
with two tokens, sigma .5 and ridge .01), and by .3 to 2.4 times that for shares below .03. The
other changes are powers of the share. With f the part of the student's fields that the teacher's
explain:

    training loss  .13 jumps^2.3 exp(-3.8 f)     test error  .42 jumps^2.5 exp(3.5 f)
    theta and m    19 jumps^3.5 exp(1.1 f)

relative to their values. The laws were measured over omega, sigma, ridge, alpha and both branches
(``benchmarks/model_error.py`` reproduces the table and the figure). Half of the estimates are
within a factor 1.2 (training loss), 1.4 (overlaps) and 2 (test error) of one step of breaking; nine
of ten of those of the training loss are within 2.2.
"""

from __future__ import annotations

import math

import numpy as np

from dotphase.model import Model
from dotphase.theory.overlaps import MIN_WEIGHT, Overlaps, norms_of
from dotphase.theory.responses import Responses
from dotphase.theory.state_evolution import Averages, conjugates, resolvent

#: Factor, power of the jumps, and weight of f in the exponent, for each result.
LAWS = {
    "train_loss": (0.13, 2.3, -3.8),
    "test_error": (0.42, 2.5, 3.5),
    "theta": (19.0, 3.5, 1.1),
    "m": (19.0, 3.5, 1.1),
}


def stiffness_lost(
    model: Model, alpha: float, overlaps: Overlaps, averages: Averages, response: Responses
) -> float:
    """Share of the stiffness ``R^{-1}`` that jumps of the proximal map remove."""
    hats = conjugates(model, alpha, overlaps, averages)
    smooth = -alpha * np.mean(np.asarray(response.jacobian), axis=0)
    missing = np.einsum("la,lij->aij", model.eigenvalues, smooth - hats.Vhat)
    shares = np.linalg.norm(resolvent(model, hats) @ missing, axis=(1, 2))
    return float(shares @ model.eigenweights)


def explained_variance(model: Model, overlaps: Overlaps) -> float:
    """Share of the variance of the student's fields that the teacher's fields explain."""
    rho = np.asarray(model.rho)[:, None, None]
    theta = np.asarray(overlaps.theta)
    signal = np.trace(theta @ theta.swapaxes(1, 2) / rho, axis1=1, axis2=2)
    spread = np.trace(np.asarray(overlaps.q), axis1=1, axis2=2)
    return float(np.sum(signal) / max(np.sum(spread), MIN_WEIGHT * np.sum(rho)))


def relative_errors(jumps: float, signal: float) -> dict[str, float]:
    """Relative changes that breaking would make, from the share of the jumps and from f."""
    return {
        name: min(factor * jumps**power * math.exp(weight * signal), 1.0)
        for name, (factor, power, weight) in LAWS.items()
    }


def model_errors(
    overlaps: Overlaps, train_loss: float, test_error: float, relative: dict[str, float]
) -> dict[str, float]:
    """Convert relative changes to absolute ones; those of theta and m are norms for token 1."""
    values = norms_of(overlaps) | {"train_loss": train_loss, "test_error": test_error}
    return {name: share * abs(values[name]) for name, share in relative.items()}
