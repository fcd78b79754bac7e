"""Attention matrices of any framework as chunks of arrays, with tokens and allowed keys."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from dotphase.errors import InvalidInput
from dotphase.finite_d.embeddings import map_safetensors
from dotphase.heads.settings import ShareSettings
from dotphase.runtime.precision import use_precision
from dotphase.storage.paths import as_path

#: Largest attention array of a chunk, in bytes.
CHUNK_BYTES = 2**25
#: Scores below this are masked keys: libraries add -1e4 (BERT), -65504 (float16), or less.
MASKED_SCORE = -1e3
#: Shape of attention that is allowed.
SHAPE = "must be of shape (sentence, head, query, key) or (sentence, layer, head, query, key)"
#: Names of arrays in files.
ATTENTION, TOKENS, MASK, KEY_TOKENS = "attention", "tokens", "mask", "key_tokens"


@dataclass(frozen=True)
class Chunk:
    """Some sentences of all heads; `shape` has the number of heads, or of layers and heads."""

    shape: tuple[int, ...]
    attention: Float[np.ndarray, "sentences heads queries keys"]
    allowed: Bool[np.ndarray, "sentences queries keys"]
    query_tokens: Int[np.ndarray, "sentences queries"] | None
    key_tokens: Int[np.ndarray, "sentences keys"] | None


def as_array(field: str, value: Any) -> np.ndarray:
    """Convert an array of NumPy or JAX, or a DLPack tensor, without a copy if possible."""
    for method in ("detach", "cpu", "contiguous"):  # PyTorch
        value = getattr(value, method)() if hasattr(value, method) else value
    try:
        if hasattr(value, "__dlpack__") and not isinstance(value, np.ndarray):
            with use_precision(np.float64):
                value = jnp.from_dlpack(value)
        array = np.asarray(value)
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InvalidInput(field, type(value).__name__, f"must be an array ({reason})") from None
    if array.dtype.kind not in "fiub" and array.dtype.name != "bfloat16":
        raise InvalidInput(field, array.dtype, "must be an array of numbers")
    return array


def chunks(
    attention: Any, tokens: Any, mask: Any, key_tokens: Any, settings: ShareSettings
) -> Iterator[Chunk]:
    """Yield chunks of an array, or of an iterator of tuples in the order of these arguments."""
    stream = hasattr(attention, "__next__")
    for field, value in ((TOKENS, tokens), (MASK, mask), (KEY_TOKENS, key_tokens)):
        if stream and value is not None:
            raise InvalidInput(field, type(value).__name__, "must be in the tuples of the iterator")
    parts = attention if stream else [(attention, tokens, mask, key_tokens)]
    size = 0
    for part in parts:
        values = part if isinstance(part, tuple) else (part,)
        arrays = _check_shapes(*values, *([None] * (4 - len(values))))
        count = len(arrays[0])
        most = max(CHUNK_BYTES // max(4 * arrays[0][0].size, 1), 1)
        size = size or min(math.ceil(count / settings.blocks), most)
        for first in range(0, count, size):
            rows = slice(first, first + size)
            cut = [None if array is None else array[rows] for array in arrays]
            yield _chunk(*cut, scores=settings.scores)


def _check_shapes(attention: Any, tokens: Any, mask: Any, key_tokens: Any) -> tuple[Any, ...]:
    """Return arrays whose shapes agree, the mask as (sentence, query, key)."""
    attention = as_array(ATTENTION, attention)
    if attention.ndim not in (4, 5) or 0 in attention.shape:
        raise InvalidInput(ATTENTION, f"shape {attention.shape}", SHAPE)
    count, (queries, keys) = len(attention), attention.shape[-2:]
    key_tokens = tokens if key_tokens is None else key_tokens
    result = [attention]
    for field, value, length in ((TOKENS, tokens, queries), (KEY_TOKENS, key_tokens, keys)):
        array = None if value is None else as_array(field, value)
        if array is not None and (array.shape != (count, length) or array.dtype.kind not in "iu"):
            rule = f"must be integers of shape ({count}, {length}), (sentence, position)"
            raise InvalidInput(field, f"{array.dtype.name} of shape {array.shape}", rule)
        result.append(array)
    return result[0], result[1], result[2], _mask(mask, count, queries, keys)


def _mask(mask: Any, count: int, queries: int, keys: int) -> np.ndarray | None:
    """Allowed keys from a mask of padding, of a causal model, or of each sentence."""
    if mask is None:
        return None
    values = as_array(MASK, mask)
    array = values == 1
    if not (array | (values == 0)).all():
        rule = "must be bool, or one for allowed keys and zero for others, not added to scores"
        raise InvalidInput(MASK, "other numbers than 0 and 1", rule)
    if array.shape == (count, queries, keys):
        return array
    if array.shape == (count, keys) and queries == keys != count:
        return array[:, :, None] & array[:, None, :]
    if array.shape == (queries, keys) and (count != queries or count == 1):
        return np.broadcast_to(array, (count, queries, keys))
    rule = f"must be ({count}, {queries}, {keys}), (sentence, query, key), True for allowed keys; "
    rule += "or (query, key), or (sentence, position), if these two differ"
    raise InvalidInput(MASK, f"shape {array.shape}", rule)


def _chunk(attention: Any, tokens: Any, key_tokens: Any, mask: Any, *, scores: bool) -> Chunk:
    """One chunk; keys without weight in all heads are masked if there is no mask."""
    values = attention.reshape(len(attention), -1, *attention.shape[-2:]).astype(np.float32)
    if mask is None:
        mask = (values > (MASKED_SCORE if scores else 0)).any(axis=1)
        if np.isnan(values).any():
            raise InvalidInput(ATTENTION, "NaN", "must be numbers without NaN")
    return Chunk(attention.shape[1:-2], values, mask, tokens, key_tokens)


def read(path: str | Path) -> dict[str, Any]:
    """Read the arguments of `shares` from an .npz or .safetensors file.

    The file has the array ``attention`` and, where known, ``tokens``, ``mask``, ``key_tokens``.
    Arrays of .safetensors are mapped, so that they need no memory.

    Examples
    --------
    >>> import numpy as np
    >>> np.savez("two_heads.npz", attention=np.full((20, 2, 3, 3), 1 / 3))
    >>> dp.heads.shares(**dp.heads.read("two_heads.npz")).log_variance
    array([0., 0.])
    """
    file = as_path("FILE", path)
    if not file.is_file() or file.suffix not in (".npz", ".safetensors"):
        raise InvalidInput("FILE", str(path), "must be an .npz or .safetensors file")
    if file.suffix == ".safetensors":
        arrays = map_safetensors(file)
    else:
        try:
            with np.load(file, allow_pickle=False) as content:
                arrays = dict(content)
        except (zipfile.BadZipFile, ValueError, EOFError, OSError):
            raise InvalidInput("FILE", str(path), "must be a readable .npz file") from None
    if ATTENTION not in arrays:
        raise InvalidInput("FILE", str(path), "must contain the array attention")
    return {name: arrays[name] for name in (ATTENTION, TOKENS, MASK, KEY_TOKENS) if name in arrays}
