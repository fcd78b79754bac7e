r"""The Bayes-optimal learner of attention of extensive rank.

A label without noise determines k combinations of the teacher's scores, whatever the student's
estimate. The posterior of S* is that of a matrix denoised from ``S* + Z/sqrt(snr)``, with

    snr = k alpha/mmse,   mmse = v - (4 pi^2/3) v^2 int density^3,   v = 1/(2 snr),

where the density is that of the eigenvalues of the noisy matrix (`spectral_density`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.optimize import brentq

from dotphase.config import validation
from dotphase.config.formatting import Description
from dotphase.extensive.score_channel import count_scores
from dotphase.extensive.solve import WideResult
from dotphase.extensive.spectral_density import NODES, spectral_density
from dotphase.extensive.transitions import recovery

#: Range of log snr that is searched.
LOG_SNR = (np.log(1e-9), np.log(1e13))


@dataclass(frozen=True, eq=False, repr=False)
class WideBayes(WideResult):
    """Bayes-optimal estimate of the teacher's matrix S*.

    Attributes
    ----------
    alpha, rho, length : the request
    mmse : ``|S - S*|^2/d`` of the posterior mean S
    q : ``tr S^2/d = 1 + rho - mmse``
    exact_recovery : True if the estimate is exact
    stderr : quadrature errors of `mmse` and `q`

    Examples
    --------
    >>> best = dp.wide.bayes(alpha=0.1, rho=0.5)
    >>> round(best.mmse, 4)
    0.3922
    """

    long_names: ClassVar = {"q": "tr S^2/d", "mmse": "squared error of S per dimension"}

    alpha: float
    rho: float
    length: int
    mmse: float
    q: float
    exact_recovery: bool
    stderr: dict[str, float]

    @property
    def description(self) -> Description:
        """Both numbers with their errors."""
        recovery = ("exact recovery",) if self.exact_recovery else ()
        return self.describe("Bayes-optimal wide attention", *recovery)


def denoising_error(snr: float, rho: float, nodes: int = NODES) -> float:
    """Squared error per dimension of the best estimate of S* from ``S* + Z/sqrt(snr)``."""
    v = 1 / (2 * snr)
    spectrum = spectral_density(1.0, float(np.sqrt(2 * v)), rho, nodes=nodes)
    return v - 4 * np.pi**2 / 3 * v**2 * float(spectrum.weight @ spectrum.density**2)


def bayes(*, alpha: float, rho: float, length: int = 2) -> WideBayes:
    """Compute the Bayes-optimal estimate of the teacher's matrix.

    Parameters
    ----------
    alpha : float
        Sentences per squared dimension, n/d^2.
    rho : float
        Width of the teacher over d.
    length : int
        Tokens of a sentence; 1 for a quadratic network, whose labels are the scores.

    Examples
    --------
    >>> dp.wide.bayes(alpha=0.2, rho=0.5).exact_recovery
    True
    """
    alpha = validation.number("alpha", alpha, at_least=1e-7)
    exact = alpha >= recovery(rho=rho, length=length).bayes
    mmse = error = 0.0
    if not exact:
        scores = count_scores(length) * alpha

        def excess(log_snr: float) -> float:
            snr = float(np.exp(log_snr))
            return float(np.log(snr * denoising_error(snr, rho) / scores))

        snr = float(np.exp(brentq(excess, *LOG_SNR, xtol=1e-13)))
        mmse = scores / snr
        error = abs(denoising_error(snr, rho) - denoising_error(snr, rho, NODES // 2))
    return WideBayes(alpha, rho, length, mmse, 1 + rho - mmse, exact, {"mmse": error, "q": error})
