"""Arguments of `shares`: settings, and attention of any framework as chunks of arrays."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from dotphase.config import validation
from dotphase.config.parameters import Flag
from dotphase.errors import InvalidInput
from dotphase.finite_d.embeddings import map_safetensors
from dotphase.runtime.precision import use_precision
from dotphase.storage.files import read_arrays
from dotphase.storage.paths import as_path

#: Most different tokens.
MAX_SYMBOLS = 2**20
#: Blocks of sentences. Errors from fewer vary: two of them cover 93% with 16, 95% with 32 or more.
BLOCKS = 32
#: Largest attention array of a chunk, in bytes.
CHUNK_BYTES = 2**21
#: Scores below this are masked keys: libraries add -1e4 (BERT), -65504 (float16), or less.
MASKED_SCORE = -1e3
#: Names of arrays in files.
ATTENTION, TOKENS, MASK, KEY_TOKENS = "attention", "tokens", "mask", "key_tokens"


@dataclass(frozen=True)
class ShareSettings:
    """Settings of `shares`.

    Attributes
    ----------
    scores : True if the numbers are scores before the softmax instead of attention weights
    floor : weights below this are raised to it before the logarithm
    diagonal : False leaves out the weight of a token on itself
    symbols : number of different tokens; counted if not given, except in a stream
    table_bytes : memory of the sums of each kind of group
    nulls : number of permutations of each kind
    seed : of the permutations

    Examples
    --------
    >>> dp.heads.ShareSettings(nulls=99).seed
    0
    """

    scores: bool = False
    floor: float = 0.0
    diagonal: bool = True
    symbols: int | None = None
    table_bytes: int = 2**28
    nulls: int = 39
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("scores", "diagonal"):
            Flag().check(name, getattr(self, name))
        validation.number("floor", self.floor, at_least=0, at_most=0.1)
        if self.symbols is not None:
            validation.integer("symbols", self.symbols, at_least=1, at_most=MAX_SYMBOLS)
        for name, least in (("table_bytes", 1), ("nulls", 19), ("seed", 0)):
            validation.integer(name, getattr(self, name), at_least=least)


class Chunk(NamedTuple):
    """Some sentences of all heads; `shape` has the number of heads, or of layers and heads."""

    shape: tuple[int, ...]
    attention: Float[np.ndarray, "sentences heads queries keys"]
    allowed: Bool[np.ndarray, "sentences queries keys"]
    tokens: tuple[Int[np.ndarray, "sentences positions"], ...]  # of queries and keys, if known


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
    """Yield chunks of an array, or of an iterator of tuples in the order of these arguments.

    The first parts are divided into one chunk for each block, further ones only to save memory.
    """
    stream = hasattr(attention, "__next__")
    for field, value in ((TOKENS, tokens), (MASK, mask), (KEY_TOKENS, key_tokens)):
        if stream and value is not None:
            raise InvalidInput(field, type(value).__name__, "must be in the tuples of the iterator")
    parts = attention if stream else [(attention, tokens, mask, key_tokens)]
    for number, part in enumerate(parts):
        values = list(part) if isinstance(part, (tuple, list)) else [part]
        attention, tokens, mask, key_tokens = values + [None] * (4 - len(values))
        attention = as_array(ATTENTION, attention)
        if attention.ndim not in (4, 5) or 0 in attention.shape:
            rule = "must be of shape (sentence, head, query, key), or with layers before the heads"
            raise InvalidInput(ATTENTION, f"shape {attention.shape}", rule)
        count, *shape, queries, keys = attention.shape
        attention = attention.reshape(count, -1, queries, keys)
        pair = _token_pair(tokens, key_tokens, attention.shape)
        allowed = _allowed_keys(mask, attention, MASKED_SCORE if settings.scores else 0)
        size = max(CHUNK_BYTES // (4 * attention[0].size), 1)
        size = min(size, math.ceil(count / BLOCKS)) if number < BLOCKS else size
        for first in range(0, count, size):
            rows = slice(first, first + size)
            weights = attention[rows].astype(np.float32)
            if mask is None and np.isnan(weights).any():
                raise InvalidInput(ATTENTION, "NaN", "must be numbers without NaN")
            yield Chunk(tuple(shape), weights, allowed[rows], tuple(part[rows] for part in pair))


def _token_pair(tokens: Any, key_tokens: Any, shape: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    """Return tokens of queries and of keys, if there are tokens."""
    if tokens is None and key_tokens is not None:
        raise InvalidInput(KEY_TOKENS, "without tokens", "must be passed with tokens")
    named = {TOKENS: tokens, KEY_TOKENS: tokens if key_tokens is None else key_tokens}
    pair = tuple(as_array(field, value) for field, value in named.items() if tokens is not None)
    for field, array, length in zip(named, pair, shape[2:], strict=False):
        if array.shape != (shape[0], length) or array.dtype.kind not in "iu":
            rule = f"must be integers of shape ({shape[0]}, {length}), (sentence, position)"
            raise InvalidInput(field, f"{array.dtype.name} of shape {array.shape}", rule)
    return pair


def _allowed_keys(mask: Any, attention: np.ndarray, lowest: float) -> np.ndarray:
    """Allowed keys (sentence, query, key); without a mask of queries, those with some weight."""
    count, heads, queries, keys = attention.shape
    array = np.ones((count, 1), bool)
    if mask is not None:
        values = as_array(MASK, mask)
        array = values == 1
        if not (array | (values == 0)).all():
            rule = "must be bool, or one for allowed keys and zero for others, not added to scores"
            raise InvalidInput(MASK, "other numbers than 0 and 1", rule)
        square = array.shape == (queries, keys) and (count != queries or count == 1)
        if square or array.shape == (count, queries, keys):
            return np.broadcast_to(array, (count, queries, keys))
        if array.shape != (count, keys) or queries != keys or keys == count:
            rule = (
                f"must be ({count}, {queries}, {keys}), (sentence, query, key), True for allowed "
            )
            rule += "keys; or (query, key), or (sentence, position), if these two differ"
            raise InvalidInput(MASK, f"shape {array.shape}", rule)
    allowed = np.zeros((count, queries, keys), bool)
    for head in range(heads):
        allowed |= attention[:, head] > lowest
    allowed &= array[:, None] & array[..., None]
    # The same pairs of positions, but for padding: otherwise zeros depend on the content.
    pattern, by_key, by_query = (allowed.any(axis, keepdims=True) for axis in range(3))
    if (allowed != (pattern & by_key & by_query)).any():
        rule = "must be positive; pass scores=True, or floor=1e-9 and mask=, (sentence, query, key)"
        raise InvalidInput(ATTENTION, "zero or less, for keys that differ by sentence", rule)
    return allowed


def read(path: str | Path) -> dict[str, Any]:
    """Read ``attention``, ``tokens``, ``mask``, ``key_tokens`` from an .npz or .safetensors file.

    All but the first are optional. Arrays of .safetensors are mapped, so that they need no memory.

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
    arrays = map_safetensors(file) if file.suffix != ".npz" else read_arrays(file, "FILE")
    if ATTENTION not in arrays:
        raise InvalidInput("FILE", str(path), "must contain the array attention")
    return {name: arrays[name] for name in (ATTENTION, TOKENS, MASK, KEY_TOKENS) if name in arrays}
