r"""Onset of the semantic part, recovery of the teacher, and their phase diagram."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr
from scipy.optimize import brentq, minimize_scalar

from dotphase.config import validation
from dotphase.extensive.score_channel import count_scores
from dotphase.extensive.solve import channels, check_point, empty_overlaps, upper_edge
from dotphase.extensive.spectral_density import NODES, legendre_rule
from dotphase.storage.labels import add_labels
from dotphase.storage.provenance import provenance


def onset(*, rho: float, ridge: float, length: int = 2, omega: float = 0.0) -> float:
    """The number of sentences per squared dimension at which S leaves zero.

    At ``S = 0`` the signal and the noise of the force are explicit. S leaves zero where the largest
    eigenvalue of ``alpha mhat S* + sqrt(alpha chihat) Z`` equals the ridge.

    Parameters
    ----------
    rho, ridge, length, omega
        As for `dotphase.wide.solve`.

    Examples
    --------
    >>> round(dp.wide.onset(rho=0.5, ridge=0.1, omega=0.3), 5)
    0.04256
    """
    point = check_point(1.0, rho, ridge, length, omega)
    alphas = []
    for channel in channels(point):
        mean = channel.averages(empty_overlaps(channel, point.omega))
        # The norm of a sum lies between the largest norm of its parts and their sum.
        signal = mean.mhat * (1 + np.sqrt(rho)) ** 2 / np.sqrt(rho)
        noise = np.sqrt(2 * mean.chihat)
        low = (2 * ridge / (noise + np.sqrt(noise**2 + 4 * signal * ridge))) ** 2
        alphas.append(brentq(lambda alpha, mean=mean: upper_edge(alpha, mean, rho) - ridge,
                             0.99 * low, 1.01 * (ridge / noise) ** 2, xtol=1e-16, rtol=1e-12)
                      )  # fmt: skip
    return float(np.mean(alphas))


class Recovery(NamedTuple):
    """Sentences per squared dimension beyond which the teacher is recovered without error.

    Attributes
    ----------
    bayes : by the Bayes-optimal learner, ``(rho - rho^2/2)/k``, rho at most 1
    ridge : by the regularized student in the limit of a small ridge
    """

    bayes: float
    ridge: float


def recovery(*, rho: float, length: int = 2) -> Recovery:
    r"""Recovery thresholds of noiseless labels.

    The regularized student minimizes the trace of S, and recovers S* at the statistical dimension
    of its descent cone. With ``r = min(rho, 1)`` and a semicircle of radius ``sqrt(2 (1 - r))``,

        k alpha = min_t  r - r^2/2 + r t^2 + (1 - r) int (x - t)_+^2 semicircle(x) dx.

    For softmax attention this assumes that every sentence has k scores without noise; one token
    stands for a quadratic network, whose label is its score.

    Parameters
    ----------
    rho, length
        As for `dotphase.wide.bayes`.

    Examples
    --------
    >>> dp.wide.recovery(rho=0.5, length=2).bayes
    0.1875
    """
    validation.number("rho", rho, at_least=1e-3, at_most=1e3)
    k = count_scores(validation.integer("length", length, at_least=1, at_most=20))
    r = min(rho, 1.0)
    nodes, weights = legendre_rule(NODES)
    angle = np.pi / 2 * nodes
    x = np.sqrt(2 * (1 - r)) * np.sin(angle)
    weights = weights * np.cos(angle) ** 2

    def dimension(t: float) -> float:
        return r * t**2 + (1 - r) * float(weights @ np.maximum(x - t, 0) ** 2)

    smallest = float(minimize_scalar(dimension, bounds=(0, 2), options={"xatol": 1e-10}).fun)
    return Recovery((r - r**2 / 2) / k, (r - r**2 / 2 + smallest) / k)


def phase_diagram(
    omegas: Sequence[float], ridges: Sequence[float], *, rho: float, length: int = 2
) -> xr.Dataset:
    """The onset of the semantic part over omega and ridge.

    Parameters
    ----------
    omegas, ridges : sequences of float
        Increasing values.
    rho, length
        As for `dotphase.wide.solve`.

    Returns
    -------
    xarray.Dataset
        ``alpha_c`` over (ridge, omega), and the recovery thresholds as attributes.

    Examples
    --------
    >>> diagram = dp.wide.phase_diagram([0.0, 0.3], [0.1], rho=0.5)
    >>> bool(diagram["alpha_c"][0, 1] > diagram["alpha_c"][0, 0])
    True
    """
    rows = validation.grid("ridges", ridges).tolist()
    columns = validation.grid("omegas", omegas).tolist()
    values = [
        [onset(rho=rho, ridge=ridge, length=length, omega=omega) for omega in columns]
        for ridge in rows
    ]
    exact = recovery(rho=rho, length=length)
    attributes = provenance(
        rho=rho, length=length, bayes_recovery=exact.bayes, ridge_recovery=exact.ridge
    )
    variables = {"alpha_c": (("ridge", "omega"), values)}
    return add_labels(xr.Dataset(variables, {"ridge": rows, "omega": columns}, attributes))
