"""Tables of embeddings: read, centred, turned into their eigenbasis."""

import json

import numpy as np
import pytest

from dotphase.errors import InvalidInput
from dotphase.finite_d import embeddings
from dotphase.finite_d.embeddings import ENTRY, KINDS, gaussian_like, installed_table, prepare_table


@pytest.fixture
def rows(rng):
    scale = np.linspace(0.2, 2.0, 20)
    return 1.0 + (scale * rng.standard_t(8, (600, 20))) @ rng.standard_normal((20, 20))


def write(path, values, entry=ENTRY):
    numbers = np.asarray(values, "<f4")
    part = {"dtype": "F32", "shape": numbers.shape, "data_offsets": [0, numbers.nbytes]}
    header = json.dumps({"__metadata__": {}, entry: part}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + numbers.tobytes())


@pytest.mark.parametrize("kind", KINDS)
def test_columns_have_the_variances_of_the_spectrum(rows, kind):
    tokens = prepare_table(rows, kind)
    np.testing.assert_allclose(tokens.table.mean(axis=0), 0, atol=1e-12)
    covariance = tokens.table.T @ tokens.table / len(rows)
    np.testing.assert_allclose(covariance, np.diag(tokens.spectrum.along(20)[0]), atol=1e-6)
    spread = np.linalg.norm(tokens.table, axis=1).std()
    if kind == "normed":
        assert spread < 0.2 * np.linalg.norm(prepare_table(rows).table, axis=1).std()
    like = gaussian_like(tokens, seed=1).table
    np.testing.assert_allclose(like.var(axis=0), tokens.spectrum.along(20)[0], rtol=0.25)


def test_an_installed_table_is_read_without_its_unused_rows(rows, tmp_path, monkeypatch):
    monkeypatch.setattr(embeddings, "PACKAGE", "weights_of_nobody")
    assert installed_table() is None
    folder = tmp_path / "weights_of_nobody" / "model"
    folder.mkdir(parents=True)
    (tmp_path / "weights_of_nobody" / "__init__.py").write_text("raise RuntimeError")
    monkeypatch.syspath_prepend(tmp_path)
    assert installed_table() is None
    write(folder / "model.safetensors", rows[:3])
    (folder / "vocab.txt").write_text("[unused0]\na\nb\n")
    np.testing.assert_allclose(installed_table(), rows[1:3], rtol=1e-6)


def test_other_files_are_refused(rows, tmp_path):
    (tmp_path / "x").write_bytes(b"\x04" + bytes(7) + b"oops")
    with pytest.raises(InvalidInput, match="safetensors"):
        embeddings.read_safetensors(tmp_path / "x", ENTRY)
    write(tmp_path / "y", rows, entry="other")
    with pytest.raises(InvalidInput, match="other"):
        embeddings.read_safetensors(tmp_path / "y", ENTRY)
    with pytest.raises(InvalidInput, match="full rank"):
        prepare_table(rows[:5], "whitened")
