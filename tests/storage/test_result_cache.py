"""Cached results are read only for the same configuration."""

import numpy as np
import pytest
import xarray as xr

from dotphase.errors import InvalidInput
from dotphase.storage.files import atomic_write, read_arrays
from dotphase.storage.result_cache import CachedResult
from dotphase.storage.run_config import config_diff, config_hash


def test_differences_are_described():
    assert config_diff({"a": 1, "b": {"c": [1, 2]}}, {"b": {"c": [1, 2]}, "a": 1}) is None
    difference = config_diff({"b": {"c": [1]}, "d": 1}, {"b": {"c": [1, 2, 3, 4, 5]}})
    assert (
        difference
        == "b.c: [1] stored, 5 values from 1 to 5 requested; d: 1 stored, nothing requested"
    )


def test_hashes_do_not_depend_on_the_order():
    assert (
        config_hash({"a": 1, "b": 2})
        == config_hash({"b": 2, "a": 1})
        != config_hash({"a": 1, "b": 3})
    )


def test_arrays_of_another_configuration_are_refused(tmp_path):
    cached = CachedResult(tmp_path / "a.npz", {"n": 2, "list": (1, 2), "number": np.float64(0.5)})
    assert cached.arrays() is None
    cached.store_arrays({"x": np.arange(2)})
    assert list(cached.arrays()) == ["x"] and cached.arrays()["x"].tolist() == [0, 1]
    other = CachedResult(cached.path, {**cached.config, "n": 3}, "checkpoint")
    with pytest.raises(InvalidInput, match=r"^checkpoint = .*\(n: 2 stored, 3 requested\)"):
        other.arrays()
    assert list(tmp_path.iterdir()) == [cached.path]


@pytest.mark.parametrize("content", [b"", b"no zip", None])
def test_damaged_arrays_are_refused_in_one_line(tmp_path, content):
    cached = CachedResult(tmp_path / "a.npz", {})
    cached.store_arrays({"x": np.arange(1000)})
    intact = cached.path.read_bytes()
    cached.path.write_bytes(intact[: len(intact) // 2] if content is None else content)
    with pytest.raises(InvalidInput, match=r"must be an \.npz file of plain arrays"):
        cached.arrays()
    np.savez(cached.path, x=np.arange(2), about="not JSON")
    assert list(cached.arrays()) == ["x"]  # an empty configuration
    with pytest.raises(InvalidInput, match="another configuration"):
        CachedResult(cached.path, {"n": 1}).arrays()


def test_pickled_objects_are_never_loaded(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.array([{}], dtype=object))
    with pytest.raises(InvalidInput, match="plain arrays"):
        read_arrays(tmp_path / "a.npz", "file")


def test_datasets_are_computed_once(tmp_path):
    calls = []

    def compute():
        calls.append(1)
        return xr.Dataset({"v": len(calls)})

    cached = CachedResult(tmp_path / "new" / "a.nc", {"a": 1})
    assert [int(cached.get(compute)["v"]) for _ in range(2)] == [1, 1]
    assert int(CachedResult(cached.path, {"a": 2}).get(compute)["v"]) == 2
    cached.path.write_bytes(cached.path.read_bytes()[:100])  # damaged: computed again
    assert int(CachedResult(cached.path, {"a": 2}).get(compute)["v"]) == 3


@pytest.mark.parametrize("texts", [["a", "b"], ["long", "é"]])
def test_a_dataset_that_has_changed_on_the_disk_is_computed_again(tmp_path, texts):
    values = np.arange(200.0)
    true = xr.Dataset({"v": ("x", values), "t": ("y", texts)})
    cached = CachedResult(tmp_path / "a.nc", {})
    cached.store_dataset(true)
    assert cached.dataset()["t"].values.tolist() == texts
    intact = cached.path.read_bytes()
    position = intact.index(values.tobytes()) + 800
    cached.path.write_bytes(intact[:position] + b"\x01" + intact[position + 1 :])
    assert cached.dataset() is None


def test_a_write_that_fails_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(RuntimeError), atomic_write(path) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("a.txt", "old")]
