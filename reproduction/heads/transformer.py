"""Small causal transformers on a task with a positional and a semantic solution.

``python -m reproduction.heads.transformer`` trains them (minutes on a CPU), measures the shares of
their heads and writes ``docs/data/heads_transformer.nc``.

Sequences repeat a block of different symbols. The block has six symbols in most sequences, another
number in one of ten. A head that attends five positions back solves the former, and an induction
head, which attends to the successor of the last occurrence of its token, solves all. The number of
distinct training sequences is the control parameter; the number of steps is the same for all.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr

import dotphase as dp

DATA = Path(__file__).parents[2] / "docs/data/heads_transformer.nc"
SYMBOLS, LENGTH, WIDTH = 12, 20, 32
#: Usual length of the block, other lengths, and their share.
PERIOD, OTHER_PERIODS, OTHER_SHARE = 6, (4, 5, 7, 8), 0.1
#: Scale of positional encodings, relative to that of token embeddings.
POSITION_SCALE = 4.0
SIZES = (16, 64, 256, 1024, 4096)
SEEDS, STEPS, BATCH, LR, DECAY = 4, 800, 64, 3e-3, 1e-2
MEASURED = 1500

Weights = dict[str, jax.Array]


def draw(rng: np.random.Generator, count: int, other: float) -> tuple[np.ndarray, np.ndarray]:
    """Draw sequences and the lengths of their blocks, a share `other` of them unusual."""
    unusual = rng.random(count) < other
    period = np.where(unusual, rng.choice(OTHER_PERIODS, count), PERIOD)
    blocks = np.argsort(rng.random((count, SYMBOLS)), axis=1)
    return np.take_along_axis(blocks, np.arange(LENGTH) % period[:, None], axis=1), period


def initialize(key: jax.Array) -> Weights:
    """Draw Gaussian weights."""
    square, scale = (WIDTH, WIDTH), {"position": POSITION_SCALE}
    shapes = {"token": (SYMBOLS, WIDTH), "position": (LENGTH, WIDTH), "output": (WIDTH, SYMBOLS)}
    shapes |= dict.fromkeys(("query", "key", "before", "value"), square)
    keys = jax.random.split(key, len(shapes))
    return {
        name: scale.get(name, 1.0) * jax.random.normal(each, shape) / np.sqrt(WIDTH)
        for each, (name, shape) in zip(keys, shapes.items(), strict=True)
    }


def scores(weights: Weights, tokens: Any) -> jax.Array:
    """Scores before the softmax; a key sees its token, its position and the token before."""
    embedded = weights["token"][tokens]
    x = embedded + weights["position"]
    before = jnp.pad(embedded[:-1], ((1, 0), (0, 0)))
    return (x @ weights["query"]) @ (x @ weights["key"] + before @ weights["before"]).T


def predict(weights: Weights, tokens: jax.Array) -> jax.Array:
    """Logits of the next token at every position."""
    causal = jnp.tril(jnp.ones((LENGTH, LENGTH), bool))
    attention = jax.nn.softmax(jnp.where(causal, scores(weights, tokens), -1e9))
    return attention @ (weights["token"][tokens] @ weights["value"]) @ weights["output"]


def evaluate(weights: Weights, tokens: Any, period: Any) -> tuple[Any, Any]:
    """Cross entropy and accuracy of the tokens that repeat the block."""
    logits = jax.nn.log_softmax(jax.vmap(partial(predict, weights))(tokens)[:, :-1])
    target = tokens[:, 1:]
    repeated = jnp.arange(1, LENGTH) >= period[:, None]
    chosen = jnp.take_along_axis(logits, target[..., None], axis=-1)[..., 0]
    right = logits.argmax(axis=-1) == target
    count = repeated.sum()
    return -(chosen * repeated).sum() / count, (right & repeated).sum() / count


@jax.jit
@partial(jax.vmap, in_axes=(0, 0, 0, None))
def train(key: jax.Array, tokens: Any, period: Any, size: int) -> tuple[Weights, Weights]:
    """Train on the first `size` sequences; return the first and the last weights."""
    optimizer = optax.adamw(LR, weight_decay=DECAY)
    first = initialize(key)

    def step(carry: Any, key: jax.Array) -> tuple[Any, None]:
        weights, state = carry
        rows = jax.random.randint(key, (BATCH,), 0, size)
        loss = jax.grad(lambda w: evaluate(w, tokens[rows], period[rows])[0])
        updates, state = optimizer.update(loss(weights), state, weights)
        return (optax.apply_updates(weights, updates), state), None

    keys = jax.random.split(jax.random.fold_in(key, 1), STEPS)
    (last, _), _ = jax.lax.scan(step, (first, optimizer.init(first)), keys)
    return first, last


def measure(weights: Weights) -> dp.heads.HeadShares:
    """Shares of the heads on sequences of independent tokens; keys have the token before."""
    tokens = np.random.default_rng(99).integers(SYMBOLS, size=(MEASURED, LENGTH))
    before = np.pad(tokens[:, :-1], ((0, 0), (1, 0)), constant_values=SYMBOLS)
    values = jax.jit(jax.vmap(lambda w: jax.vmap(partial(scores, w))(tokens)))(weights)
    causal = np.tril(np.ones((LENGTH, LENGTH), bool))
    return dp.heads.shares(np.asarray(values).swapaxes(0, 1), tokens, causal, before, scores=True)


def run(size: int) -> xr.Dataset:
    """Train all seeds on their own `size` sequences; accuracies and shares."""
    data = [draw(np.random.default_rng(seed), max(SIZES), OTHER_SHARE) for seed in range(SEEDS)]
    tokens, period = (np.stack(part) for part in zip(*data, strict=True))
    first, last = train(jax.random.split(jax.random.key(0), SEEDS), tokens, period, size)
    accuracy = {"train": jax.vmap(evaluate)(last, tokens[:, :size], period[:, :size])[1]}
    for name, other in (("usual", 0.0), ("unusual", 1.0)):
        fresh = draw(np.random.default_rng(98), 1000, other)
        accuracy[name] = jax.vmap(evaluate, in_axes=(0, None, None))(last, *fresh)[1]
    parts = [measure(weights).dataset() for weights in (first, last)]
    names = [name for part in ("positional", "semantic", "interaction", "rest")
             for name in (part, f"{part}_stderr")]  # fmt: skip
    shares = xr.concat([part[names] for part in parts], xr.Variable("time", ["start", "end"]))
    shares = shares.rename(head="seed")
    variables = {f"accuracy_{name}": ("seed", np.asarray(each)) for name, each in accuracy.items()}
    return shares.assign(variables)


def main() -> None:
    results = []
    for size in SIZES:
        results.append(run(size))
        end = results[-1].sel(time="end")
        names = ("positional", "semantic", "accuracy_train", "accuracy_usual", "accuracy_unusual")
        print(size, *(f"{name} {end[name].values.round(2)}" for name in names), flush=True)
    dataset = xr.concat(results, xr.Variable("sequences", list(SIZES)))
    dataset.attrs = {"steps": STEPS, "command": "python -m reproduction.heads.transformer"}
    dataset.to_netcdf(DATA, engine="h5netcdf")


if __name__ == "__main__":
    main()
