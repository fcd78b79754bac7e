"""Where there is nothing to compute on, that is said, and no function is blamed."""

import jax
import pytest

import dotphase as dp


@pytest.mark.parametrize("error", [RuntimeError("no\nGPU"), AssertionError()])
def test_a_device_that_is_not_there_is_named(monkeypatch, error):
    def none():
        raise error

    monkeypatch.setenv("JAX_PLATFORMS", "cuda")
    monkeypatch.setattr(jax, "devices", none)
    with pytest.raises(dp.InvalidInput, match="JAX_PLATFORMS = 'cuda': must name a device") as told:
        dp.positional_semantic()
    assert "\n" not in str(told.value)
