"""Files with networks: what is none is refused in one line."""

import io
import zipfile

import numpy as np
import pytest

import dotphase as dp
from dotphase import histogram
from dotphase.histogram.weights import NAMES


def parameters() -> dict[str, np.ndarray]:
    network = histogram.shipped("semantic")
    return {name: np.asarray(getattr(network, name)) for name in NAMES}


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("query", lambda array: array[:-1]),
        ("tokens", lambda array: array[:, :-1]),
        ("tokens", lambda array: array[0, 0]),
        ("positions", lambda array: array[None]),
        ("norm_scale", lambda array: array[:, None]),
        ("hidden_bias", lambda array: array[:-1]),
        ("output_bias", lambda array: array[0]),
        ("key", lambda array: array + np.nan),
        ("value", lambda array: np.full(array.shape, "a word")),
    ],
)
def test_parameters_of_other_shapes_are_refused(tmp_path, name, change):
    arrays = parameters()
    np.savez(tmp_path / "whole.npz", **arrays)
    assert histogram.load_network(tmp_path / "whole.npz").length == 10
    np.savez(tmp_path / "changed.npz", **arrays | {name: change(arrays[name])})
    with pytest.raises(dp.InvalidInput, match=r"weights = .*finite arrays of matching shapes"):
        histogram.load_network(tmp_path / "changed.npz")


def test_a_header_that_asks_for_a_terabyte_is_refused(tmp_path):
    header = io.BytesIO()
    shape = {"descr": "<f4", "fortran_order": False, "shape": (2**38,)}
    np.lib.format.write_array_header_1_0(header, shape)
    np.savez(tmp_path / "huge.npz", **{k: v for k, v in parameters().items() if k != "query"})
    with zipfile.ZipFile(tmp_path / "huge.npz", "a") as file:
        file.writestr("query.npy", header.getvalue() + bytes(64))
    with pytest.raises(dp.InvalidInput, match=r"huge\.npz.*must be an \.npz file of plain arrays"):
        histogram.load_network(tmp_path / "huge.npz")


def test_a_small_file_of_huge_arrays_is_refused_before_it_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr("dotphase.storage.files.MIN_EXPANDED", 2**20)
    bomb = tmp_path / "bomb.npz"
    np.savez_compressed(bomb, junk=np.zeros(2**20), **parameters())
    read = []
    monkeypatch.setattr(np.lib.npyio.NpzFile, "__getitem__", lambda *key: read.append(key))
    with pytest.raises(dp.InvalidInput, match="npz file of plain arrays"):
        histogram.load_network(bomb)
    assert not read
