r"""Spectrum of a noisy teacher, ``H = c S* + s Z``, and averages of spectral denoisers over it.

``S* = W W^T/(d sqrt rho)`` has a Marchenko-Pastur spectrum, Z is symmetric with Gaussian entries of
variance ``1/(2 d)`` off the diagonal. The resolvent ``G(x) = tr (x - H)^-1/d`` solves a cubic
equation (free convolution with a semicircle),

    x = 1/G + c rho/(sqrt rho - c G) + s^2 G/2,     density = -Im G/pi.

The equations are scaled by s, so that only the ratio ``c/s`` remains.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

#: Gauss-Legendre nodes of one band.
NODES = 160

Nodes = Float[np.ndarray, " nodes"]


class SpectralDensity(NamedTuple):
    """Eigenvalues of ``H = signal S* + noise Z`` as a quadrature rule."""

    x: Nodes
    #: Weights of averages over the eigenvalues; they include the density.
    weight: Nodes
    density: Nodes
    #: Real part of the resolvent.
    hilbert: Nodes


@cache
def legendre_rule(nodes: int) -> tuple[Nodes, Nodes]:
    """Gauss-Legendre nodes and weights on (-1, 1)."""
    return np.polynomial.legendre.leggauss(nodes)


def resolvent(x: Nodes, signal: float, noise: float, rho: float) -> Nodes:
    """The root of the cubic with the most negative imaginary part; inside of bands only."""
    gamma, root = signal / noise, np.sqrt(rho)
    y = x / noise
    leading = np.full_like(y, gamma / 2)
    coefficients = np.stack(
        [leading, -(root / 2 + y * gamma), y * root + gamma * (1 - rho), np.full_like(y, -root)]
    )
    companion = np.zeros((y.size, 3, 3))
    companion[:, 0] = -(coefficients[1:] / leading).T
    companion[:, 1, 0] = companion[:, 2, 1] = 1
    roots = np.linalg.eigvals(companion).astype(complex)
    G = np.take_along_axis(roots, roots.imag.argmin(axis=1)[:, None], axis=1)[:, 0]
    for _ in range(2):  # eigenvalues of the companion matrix lose digits if gamma is small
        value = ((leading * G + coefficients[1]) * G + coefficients[2]) * G + coefficients[3]
        slope = (3 * leading * G + 2 * coefficients[1]) * G + coefficients[2]
        step = value / slope
        G = np.where(abs(step) < 0.1 * abs(G.imag), G - step, G)
    return G / noise


def bands(signal: float, noise: float, rho: float) -> list[tuple[float, float]]:
    """Intervals with a positive density, from the roots of ``x'(G) = 0``.

    Real roots are edges. A complex root is close to a narrow gap that has closed; the band is split
    there, since the density nearly vanishes.
    """
    gamma, root = signal / noise, np.sqrt(rho)
    # (G^2/2 - 1) (root - gamma G)^2 + gamma^2 rho G^2 = 0
    quartic = np.polymul([0.5, 0, -1], [gamma**2, -2 * gamma * root, rho])
    G = np.roots(np.polyadd(quartic, [gamma**2 * rho, 0, 0]))
    G = G[G.imag >= 0]
    edges = np.sort(noise * (1 / G + gamma * rho / (root - gamma * G) + G / 2).real)
    middles = (edges[1:] + edges[:-1]) / 2
    inside = resolvent(middles, signal, noise, rho).imag < 0
    pairs = zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    return [pair for pair, full in zip(pairs, inside, strict=True) if full]


def spectral_density(
    signal: float, noise: float, rho: float, cut: float = -np.inf, nodes: int = NODES
) -> SpectralDensity:
    """Quadrature for the eigenvalues of ``signal S* + noise Z`` above `cut`.

    The substitution ``x = middle + half sin(angle)`` removes the square roots at the edges.
    """
    unit, weights = legendre_rule(nodes)
    parts = []
    for low, high in bands(signal, noise, rho):
        if high <= cut:
            continue
        middle, half = (low + high) / 2, (high - low) / 2
        first = np.arcsin(max((cut - middle) / half, -1.0))
        scale = (np.pi / 2 - first) / 2
        angle = first + scale * (unit + 1)
        x = middle + half * np.sin(angle)
        G = resolvent(x, signal, noise, rho)
        density = np.maximum(-G.imag, 0) / np.pi
        weight = weights * scale * half * np.cos(angle) * density
        parts.append((x, weight, density, G.real))
    columns = zip(*parts, strict=True) if parts else ([np.zeros(0)],) * 4
    return SpectralDensity(*map(np.concatenate, columns))


class Overlaps(NamedTuple):
    """Numbers of the student's matrix, per dimension, and its positional shift: `QUANTITIES`."""

    q: float = 0.0
    m: float = 0.0
    V: float = 0.0
    trace: float = 0.0
    rank: float = 0.0
    shift: float = 0.0


def thresholded(vhat: float, mhat: float, chihat: float, ridge: float, rho: float) -> Overlaps:
    r"""Overlaps of ``S = (mhat S* + sqrt(chihat) Z - ridge)_+ / vhat``.

    With the eigenvalues x of the matrix in brackets before the shift, and ``y = (x - ridge)_+``,

        q = E y^2/vhat^2,   V = E y Re G/vhat,   m = E y (x - chihat Re G)/(mhat vhat).
    """
    spectrum = spectral_density(mhat, np.sqrt(chihat), rho, cut=ridge)
    x, weight, hilbert = spectrum.x, spectrum.weight, spectrum.hilbert
    y = x - ridge
    return Overlaps(
        q=float(weight @ y**2) / vhat**2,
        m=float(weight @ (y * (x - chihat * hilbert))) / (mhat * vhat),
        V=float(weight @ (y * hilbert)) / vhat,
        trace=float(weight @ y) / vhat,
        rank=float(weight.sum()),
    )
