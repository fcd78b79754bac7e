"""Settings of the host program change no numbers, in any thread."""

import threading
import warnings

import jax
import numpy as np
import pytest

import dotphase as dp

HOST = {
    "jax_default_prng_impl": "rbg",
    "jax_threefry_partitionable": False,
    "jax_numpy_dtype_promotion": "strict",
    "jax_numpy_rank_promotion": "raise",
    "jax_transfer_guard": "disallow",
    "jax_debug_nans": True,
    "jax_disable_jit": True,
}


def weights(model):
    return dp.train(model, 1.0, 20, seeds=1, steps=3, held_out=2).runs[0].weights


@pytest.fixture(scope="module")
def expected(paper):
    return weights(paper)


@pytest.fixture(params=HOST)
def host(request):
    name = request.param
    before = getattr(jax.config, name)
    jax.config.update(name, HOST[name])
    yield
    jax.config.update(name, "allow" if name == "jax_transfer_guard" else before)


def test_settings_of_jax_for_all_threads(paper, expected, host):
    np.testing.assert_array_equal(weights(paper), expected)
    results = []
    thread = threading.Thread(target=lambda: results.append(weights(paper)))
    thread.start()
    thread.join()
    np.testing.assert_array_equal(results[0], expected)


def test_strict_numpy(paper, expected):
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(weights(paper), expected)
        assert np.geterr()["under"] == "raise"


def test_the_implementation_of_keys_is_recorded(paper):
    assert dp.results.provenance(paper)["prng"] == "threefry2x32, partitionable"
