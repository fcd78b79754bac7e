"""Spectra: their normalisation, how directions are dealt out, what is refused."""

import numpy as np
import pytest

import dotphase as dp
from dotphase.finite_d.datasets import draw_tokens, weighted_product
from dotphase.finite_d.prng_keys import as_key
from dotphase.model.spectrum import Spectrum, from_data, power_law, spiked


def test_every_spectrum_has_mean_one():
    for spectrum in (power_law(1.3, 7), spiked(20, 0.1), Spectrum([[1, 2], [0, 5]], [3, 1])):
        np.testing.assert_allclose(spectrum.values @ spectrum.weights, 1)
        assert spectrum.weights.sum() == pytest.approx(1)
    ratio = power_law(1.5, 4).values[0]
    np.testing.assert_allclose(ratio / ratio[0], np.arange(1, 5) ** -1.5)
    assert spiked(20, 0.1).values[0, 0] == pytest.approx(20 / 2.9)


def test_directions_are_dealt_by_weight_and_scattered():
    values = np.asarray(Spectrum([4.0, 1.0, 0.5], [0.25, 0.25, 0.5]).along(80))[0]
    found, counts = np.unique(values, return_counts=True)
    assert counts.tolist() == [40, 20, 20]
    np.testing.assert_allclose(found, np.array([0.5, 1.0, 4.0]) / 1.5)
    for quarter in values.reshape(4, 20):
        assert quarter.mean() == pytest.approx(1, abs=0.15)
    # Where the weights do not divide d the mean is still one.
    assert float(np.mean(spiked(30, 0.1).along(37))) == pytest.approx(1)


def test_spectrum_of_data(rng):
    scale = np.sqrt([9.0, 4.0, 1.0, 1.0])
    rotation = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    tokens = 3.0 + (scale * rng.standard_normal((40_000, 4))) @ rotation
    np.testing.assert_allclose(from_data(tokens, 4).values[0], scale**2 / 3.75, rtol=0.03)
    np.testing.assert_allclose(from_data(tokens, 2).values[0], [6.5 / 3.75, 1 / 3.75], rtol=0.03)


def test_tokens_have_the_covariance(rng):
    model = dp.positional_semantic(spectrum=Spectrum([[3.0, 1.0], [1.0, 1.0]]))
    tokens = np.asarray(draw_tokens(model, 6, 20_000, as_key(1), np.dtype("float64")))
    expected = 0.25 * np.asarray(model.spectrum.along(6))
    np.testing.assert_allclose(tokens.var(axis=0), expected, rtol=0.06)
    left, right = rng.standard_normal((2, 6, 1))
    product = np.asarray(weighted_product(model, left, right))
    np.testing.assert_allclose(product, left.T @ np.diag(expected[0]) @ right / 6)


@pytest.mark.parametrize("values", [[], [-1.0, 2.0], [np.nan], "x", [0.0, 0.0], [[[1.0]]]])
def test_bad_values_are_refused(values):
    with pytest.raises(dp.InvalidInput, match=r"spectrum\.values"):
        Spectrum(values)


def test_what_does_not_fit_or_is_not_worked_out_is_refused():
    with pytest.raises(dp.InvalidInput, match=r"spectrum\.weights"):
        Spectrum([1.0, 2.0], [1.0, 0.0])
    with pytest.raises(dp.InvalidInput, match="spectrum = "):
        dp.positional_semantic(spectrum=Spectrum(np.ones((3, 2))))
    with pytest.raises(dp.InvalidInput, match="share"):
        spiked(3, 1.5)
    model = dp.positional_semantic(spectrum=power_law(1, 4))
    for call in (
        lambda: dp.bayes.optimal(model, 1.0),
        lambda: dp.amp(model, 1.0, 40),
        lambda: dp.analysis.landscape(model, 1.0, [0.1], [0.1]),
    ):
        with pytest.raises(dp.InvalidInput, match="for white tokens"):
            call()
