"""Free convolution against known spectra and against finite matrices."""

import numpy as np
import pytest

from dotphase.extensive.spectral_density import spectral_density, thresholded


@pytest.mark.parametrize(
    ("signal", "noise", "rho"),
    [(1, 0.01, 0.5), (1, 0.3, 0.5), (1e-3, 1, 0.5), (1, 1, 2.0), (100, 0.2, 0.3), (1, 0.1, 1.0)],
)
def test_moments_are_those_of_the_two_matrices(signal, noise, rho):
    density = spectral_density(signal, noise, rho)
    second = signal**2 * (1 + rho) + noise**2 / 2
    assert density.weight.sum() == pytest.approx(1, abs=1e-9)
    assert density.weight @ density.x == pytest.approx(signal * np.sqrt(rho), rel=1e-9)
    assert density.weight @ density.x**2 == pytest.approx(second, rel=1e-9)


def test_without_signal_the_spectrum_is_a_semicircle():
    density = spectral_density(1e-9, 1.0, 0.5)
    assert abs(density.x).max() < np.sqrt(2) + 1e-6
    expected = np.sqrt(np.maximum(2 - density.x**2, 0)) / np.pi
    np.testing.assert_allclose(density.density, expected, atol=1e-4)


def test_without_noise_the_spectrum_is_marchenko_pastur():
    rho, cut = 0.5, 0.05
    density = spectral_density(1.0, 1e-5, rho, cut=cut)
    low, high = (1 - np.sqrt(rho)) ** 2 / np.sqrt(rho), (1 + np.sqrt(rho)) ** 2 / np.sqrt(rho)
    x = density.x
    expected = np.sqrt(np.maximum((high - x) * (x - low), 0)) * np.sqrt(rho) / (2 * np.pi * x)
    np.testing.assert_allclose(density.density, expected, atol=1e-6)
    assert density.weight.sum() == pytest.approx(rho, abs=1e-9)


def test_overlaps_are_those_of_a_finite_matrix():
    d, rho, mhat, chihat, ridge, vhat = 400, 0.5, 0.7, 0.16, 0.3, 2.0
    rng = np.random.default_rng(1)
    W = rng.standard_normal((d, round(rho * d)))
    teacher = W @ W.T / (d * np.sqrt(rho))
    Z = rng.standard_normal((d, d)) / np.sqrt(d)
    Z = (Z + Z.T) / 2
    values, vectors = np.linalg.eigh(mhat * teacher + np.sqrt(chihat) * Z)
    kept = np.maximum(values - ridge, 0) / vhat
    S = (vectors * kept) @ vectors.T
    expected = thresholded(vhat, mhat, chihat, ridge, rho)
    assert np.sum(S**2) / d == pytest.approx(expected.q, rel=0.02)
    assert np.sum(S * teacher) / d == pytest.approx(expected.m, rel=0.02)
    assert np.sum(S * Z) / d / np.sqrt(chihat) == pytest.approx(expected.V, rel=0.02)
    assert np.trace(S) / d == pytest.approx(expected.trace, rel=0.02)
    assert np.mean(kept > 0) == pytest.approx(expected.rank, rel=0.01)


def test_the_cut_enters_as_a_threshold():
    """``q = E (x - ridge)_+^2/vhat^2``: its derivative in the ridge is -2 trace/vhat."""
    step, point = 1e-5, (2.0, 0.7, 0.16, 0.3, 0.5)
    up, down = (thresholded(*point[:3], 0.3 + sign * step, 0.5) for sign in (1, -1))
    slope = (up.q - down.q) / (2 * step)
    assert slope == pytest.approx(-2 * thresholded(*point).trace / point[0], rel=1e-6)
