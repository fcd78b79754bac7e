"""Files that know what was asked: read back for the same question alone."""

import numpy as np
import pytest
import xarray as xr

from dotphase.errors import InvalidInput
from dotphase.storage.files import atomic_write, read_arrays
from dotphase.storage.result_cache import CachedResult
from dotphase.storage.run_config import config_diff, config_hash


def test_differences_are_told_in_words():
    assert config_diff({"a": 1, "b": {"c": [1, 2]}}, {"b": {"c": [1, 2]}, "a": 1}) is None
    told = config_diff({"b": {"c": [1]}, "d": 1}, {"b": {"c": [1, 2, 3, 4, 5]}})
    assert told == "b.c: [1] stored, 5 values from 1 to 5 requested; d: 1 stored, nothing requested"


def test_names_of_questions_do_not_depend_on_their_order():
    assert (
        config_hash({"a": 1, "b": 2})
        == config_hash({"b": 2, "a": 1})
        != config_hash({"a": 1, "b": 3})
    )


def test_arrays_of_another_question_are_refused(tmp_path):
    kept = CachedResult(tmp_path / "a.npz", {"n": 2, "list": (1, 2), "number": np.float64(0.5)})
    assert kept.arrays() is None
    kept.store_arrays({"x": np.arange(2)})
    assert list(kept.arrays()) == ["x"] and kept.arrays()["x"].tolist() == [0, 1]
    other = CachedResult(kept.path, {**kept.config, "n": 3}, "checkpoint")
    with pytest.raises(InvalidInput, match=r"^checkpoint = .*\(n: 2 stored, 3 requested\)"):
        other.arrays()
    assert list(tmp_path.iterdir()) == [kept.path]


@pytest.mark.parametrize("left", [b"", b"no zip", None])
def test_damaged_arrays_are_refused_in_one_line(tmp_path, left):
    kept = CachedResult(tmp_path / "a.npz", {})
    kept.store_arrays({"x": np.arange(1000)})
    whole = kept.path.read_bytes()
    kept.path.write_bytes(whole[: len(whole) // 2] if left is None else left)
    with pytest.raises(InvalidInput, match=r"must be an \.npz file of plain arrays"):
        kept.arrays()
    np.savez(kept.path, x=np.arange(2), about="not JSON")
    assert list(kept.arrays()) == ["x"]  # asked for nothing in particular
    with pytest.raises(InvalidInput, match="another configuration"):
        CachedResult(kept.path, {"n": 1}).arrays()


def test_pickled_objects_are_never_loaded(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.array([{}], dtype=object))
    with pytest.raises(InvalidInput, match="plain arrays"):
        read_arrays(tmp_path / "a.npz", "file")


def test_datasets_are_computed_once(tmp_path):
    calls = []

    def compute():
        calls.append(1)
        return xr.Dataset({"v": len(calls)})

    kept = CachedResult(tmp_path / "new" / "a.nc", {"a": 1})
    assert [int(kept.get(compute)["v"]) for _ in range(2)] == [1, 1]
    assert int(CachedResult(kept.path, {"a": 2}).get(compute)["v"]) == 2
    kept.path.write_bytes(kept.path.read_bytes()[:100])  # damaged: computed again
    assert int(CachedResult(kept.path, {"a": 2}).get(compute)["v"]) == 3


@pytest.mark.parametrize("texts", [["a", "b"], ["long", "é"]])
def test_a_dataset_that_has_changed_on_the_disk_is_computed_again(tmp_path, texts):
    values = np.arange(200.0)
    true = xr.Dataset({"v": ("x", values), "t": ("y", texts)})
    kept = CachedResult(tmp_path / "a.nc", {})
    kept.store_dataset(true)
    assert kept.dataset()["t"].values.tolist() == texts
    whole = kept.path.read_bytes()
    place = whole.index(values.tobytes()) + 800
    kept.path.write_bytes(whole[:place] + b"\x01" + whole[place + 1 :])
    assert kept.dataset() is None


def test_a_write_that_fails_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(RuntimeError), atomic_write(path) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("a.txt", "old")]
