"""One epoch of the histogram task against the plain way of writing it, in one run.

    python benchmarks/histogram.py

The plain way embeds every token, multiplies by Q, K and V token by token, and takes one compiled
step per batch from a Python loop, as training scripts do. Ours is what `dotphase histogram` runs,
held-out accuracy included in both. Times are the best of some epochs after the first.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from dotphase import histogram
from dotphase.histogram.network import MECHANISMS, Network, constrain, constraint, initialize
from dotphase.histogram.train import OPTIMIZERS, Plan, train


def plain_loss(network: Network, rule: Any, sequences: Any, counts: Any) -> tuple[Any, Any]:
    """Every token on its own, in full width."""
    held = constrain(network, rule)
    z = held.tokens[sequences] + held.positions
    scores = (z @ held.query) @ (z @ held.key).swapaxes(1, 2) / np.float32(8)
    mixed = jax.nn.softmax(scores, axis=-1) @ (z @ held.value)
    mixed = mixed - mixed.mean(axis=-1, keepdims=True)
    normed = mixed / jnp.sqrt((mixed**2).mean(axis=-1, keepdims=True) + 1e-5)
    normed = normed * held.norm_scale + held.norm_shift
    hidden = jax.nn.relu(normed @ held.hidden_weight + held.hidden_bias)
    logits = hidden @ held.output_weight + held.output_bias
    loss = optax.softmax_cross_entropy_with_integer_labels(logits, counts).mean()
    return loss, (logits.argmax(axis=-1) == counts).mean()


def plain_epochs(mechanism: str, split: Any, epochs: int) -> list[dict[str, float]]:
    """A Python loop over batches."""
    rule, method = constraint(mechanism), OPTIMIZERS["adam"]()
    network = initialize(jax.random.key(0), 15, 10)
    memory = method.init(network)

    @jax.jit
    def step(network: Any, memory: Any, sequences: Any, counts: Any) -> Any:
        (loss, _), slope = jax.value_and_grad(plain_loss, has_aux=True)(
            network, rule, sequences, counts
        )
        change, memory = method.update(slope, memory, network)
        return optax.apply_updates(network, change), memory, loss

    judge = jax.jit(plain_loss)
    random = np.random.default_rng(0)

    def epoch() -> None:
        nonlocal network, memory
        order = random.permutation(len(split.train))
        total = 0.0
        for first in range(0, len(order), 32):
            some = order[first : first + 32]
            network, memory, loss = step(
                network, memory, split.train[some], split.train_counts[some]
            )
            total += float(loss)
        for first in range(0, len(split.held_out), 64):
            some = slice(first, first + 64)
            judge(network, rule, split.held_out[some], split.held_out_counts[some])[1].item()

    return [timed(epoch) for _ in range(epochs)]


def our_epochs(mechanisms: tuple[str, ...], split: Any, epochs: int) -> list[dict[str, float]]:
    """What the package does, for one run of each mechanism at once."""
    with jax.enable_x64(False):
        keys = jax.random.split(jax.random.key(0), len(mechanisms))
        networks = jax.vmap(lambda key: initialize(key, 15, 10))(keys)
    rules = jax.tree.map(lambda *parts: np.stack(parts), *map(constraint, mechanisms))
    marks = [(time.perf_counter(), time.process_time())]

    def mark(event: Any) -> None:
        marks.append((time.perf_counter(), time.process_time()))

    train(networks, rules, keys, split, Plan(epochs=epochs), progress=mark)
    steps = np.diff(marks, axis=0)
    return [{"seconds": wall, "cpu_seconds": cpu} for wall, cpu in steps.tolist()]


def timed(call: Callable[[], None]) -> dict[str, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return {"seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - cpu}


def best(epochs: list[dict[str, float]]) -> dict[str, float]:
    """The best of the epochs after the first, which compiles."""
    return {name: min(some[name] for some in epochs[1:]) for name in epochs[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.epochs < 2:
        parser.error("--epochs must be at least 2: the first compiles")
    split = histogram.draw(histogram.Task())
    result: dict[str, dict[str, float]] = {}
    for mechanism in MECHANISMS:
        result[f"plain, {mechanism}"] = best(plain_epochs(mechanism, split, options.epochs))
        result[f"ours, {mechanism}"] = best(our_epochs((mechanism,), split, options.epochs))
    result["ours, both at once"] = best(our_epochs(MECHANISMS, split, options.epochs))
    if options.json:
        print(json.dumps(result))
        return
    for name, times in result.items():
        print(f"{name:22s} {times['seconds']:.2f} s per epoch, {times['cpu_seconds']:.2f} s of CPU")
    for mechanism in MECHANISMS:
        ratio = result[f"plain, {mechanism}"]["seconds"] / result[f"ours, {mechanism}"]["seconds"]
        print(f"{mechanism}: {ratio:.1f} times faster")


if __name__ == "__main__":
    main()
