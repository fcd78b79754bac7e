"""Checks that every result class must pass."""

from __future__ import annotations

import copy
import pickle

import jax
import numpy as np
import xarray as xr

import dotphase as dp


def assert_same(actual, expected):
    """Compare two trees by type, shape and bits."""
    assert type(actual) is type(expected)
    if isinstance(expected, np.ndarray | jax.Array):
        assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
        assert np.asarray(actual).tobytes() == np.asarray(expected).tobytes()
    elif isinstance(expected, tuple | list):
        assert len(actual) == len(expected)
        for pair in zip(actual, expected, strict=True):
            assert_same(*pair)
    elif isinstance(expected, dict):
        assert list(actual) == list(expected)
        assert_same(list(actual.values()), list(expected.values()))
    elif hasattr(expected, "__dataclass_fields__"):
        # Modules set their fields in another order than they are decoded in.
        assert_same(*(dict(sorted(vars(part).items())) for part in (actual, expected)))
    elif isinstance(expected, xr.Dataset):
        xr.testing.assert_identical(actual, expected)
    elif isinstance(expected, float):
        assert np.float64(actual).tobytes() == np.float64(expected).tobytes()
    else:
        assert actual == expected


def assert_is_a_result(result, folder):
    """Identity, exact copies and files, a labeled dataset, one line of repr, HTML."""
    assert result == result and len({result, result}) == 1
    path = result.save(folder / "result.nc")
    for again in (dp.load(path), pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):
        assert again != result
        assert_same(again, result)
    dataset = result.dataset()
    assert dataset.data_vars
    for name, variable in dataset.variables.items():
        if variable.dtype.kind in "fiu":
            assert variable.attrs["long_name"] and variable.attrs["units"], name
    assert dataset.attrs["software"].startswith("dotphase ")
    assert type(result).__name__ in repr(result) and "\n" not in repr(result)
    assert "<table>" in result._repr_html_()
