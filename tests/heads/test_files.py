"""Files with attention, and the command."""

import json
from unittest.mock import patch

import numpy as np
import pytest
from click.testing import CliRunner

import dotphase as dp
from dotphase.cli.main import cli
from dotphase.errors import InvalidInput
from dotphase.heads.shares import SHARES


def arrays():
    rng = np.random.default_rng(0)
    tokens = rng.integers(4, size=(60, 2 + 4))
    kernel = rng.normal(size=(4, 4))[tokens[:, None, :, None], tokens[:, None, None, :]]
    scores = np.concatenate([kernel, np.broadcast_to(rng.normal(size=(6, 6)), kernel.shape)], 1)
    weights = np.exp(scores)
    return {"attention": weights / weights.sum(axis=-1, keepdims=True), "tokens": tokens}


def write_safetensors(path, content):
    names = {"float32": "F32", "int64": "I64"}
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, array in content.items():
        first, data = len(data), data + array.tobytes()
        header[name] = {"dtype": names[array.dtype.name], "shape": array.shape,
                        "data_offsets": [first, len(data)]}  # fmt: skip
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def test_both_formats_give_the_same_arrays(tmp_path):
    content = arrays() | {"attention": arrays()["attention"].astype(np.float32)}
    np.savez_compressed(tmp_path / "a.npz", **content, other=np.zeros(3))
    write_safetensors(tmp_path / "a.safetensors", content)
    npz, safetensors = (dp.heads.read(tmp_path / name) for name in ("a.npz", "a.safetensors"))
    assert list(npz) == list(safetensors) == list(content)
    for name, array in content.items():
        np.testing.assert_array_equal(npz[name], array)
        np.testing.assert_array_equal(safetensors[name], array)


def test_the_command_writes_table_dataset_and_figure(tmp_path):
    np.savez(tmp_path / "a.npz", **arrays())
    out = tmp_path / "out"
    call = ["heads", str(tmp_path / "a.npz"), "--out", str(out)]
    result = json.loads(CliRunner().invoke(cli, [*call, "--json"]).stdout)
    assert result["verdict"] == ["semantic", "positional"]
    (first, _) = result["heads"]
    assert first["semantic"] == result["semantic"][0] and set(first["stderr"]) == set(SHARES)
    assert dp.load(out / "heads.nc").verdict.tolist() == result["verdict"]
    assert {"heads.csv", "heads.nc", "heads.png"} == {path.name for path in out.iterdir()}
    with patch("dotphase.heads.shares", return_value=dp.load(out / "heads.nc")):
        assert "head 1: positional (" in CliRunner().invoke(cli, call).stdout


@pytest.mark.parametrize("name", ["missing.npz", "text.npz", "empty.npz", "broken.safetensors"])
def test_unreadable_files_are_one_line(name, tmp_path):
    (tmp_path / "text.npz").write_text("text")
    (tmp_path / "broken.safetensors").write_bytes(b"\xff" * 20)
    np.savez(tmp_path / "empty.npz", tokens=np.zeros(3))
    with pytest.raises(InvalidInput):
        dp.heads.read(tmp_path / name)
    call = ["heads", str(tmp_path / name), "--out", str(tmp_path / "out")]
    result = CliRunner().invoke(cli, call)
    assert result.exit_code != 0 and not (tmp_path / "out").exists()
