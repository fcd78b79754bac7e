"""Settings of JAX and NumPy in the host program: the same numbers, or one clear line."""

from __future__ import annotations

import asyncio
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
import numpy as np
from common import Trial, require, run

import dotphase as dp

PAPER = dp.positional_semantic()
POINT: dict[str, Any] = {"alpha": 2.0, "d": 40, "seeds": 2}
FEW: dict[str, Any] = {"log2_ensemble": 8, "repetitions": 2, "rtol": None}
#: Calls of every engine; each returns numbers.
CALLS: dict[str, Callable[[], Any]] = {
    "train": lambda: dp.train(PAPER, **POINT, steps=20).mean,
    "train, float32": lambda: dp.train(PAPER, **POINT, steps=20, dtype="float32").mean,
    "train, sgd": lambda: dp.train(PAPER, **POINT, optimizer="sgd", steps=5).mean,
    "amp": lambda: dp.amp(PAPER, **POINT, iterations=3).mean,
    "grid": lambda: dp.grid(dp.positional_semantic, [2.0], [0.3], 40, steps=20),
    "basins": lambda: dp.basins(PAPER, [2.0], [0.5], 40, seeds=2, steps=20),
    "baseline": lambda: dp.baseline(PAPER, **POINT).runs,
    "sample": lambda: dp.sample(PAPER, 40, 80, 1)._asdict(),
    "dynamics": lambda: dp.dynamics(PAPER, 2.0, steps=5, lr=8.0, **FEW).dataset(),
    "dynamics at d": lambda: dp.dynamics(PAPER, 2.0, steps=3, lr=8.0, d=200, **FEW).dataset(),
    "solve": lambda: dp.solve(PAPER, 2.0, log2_points=12).overlaps._asdict(),
    "curve": lambda: dp.curve(PAPER, [2.0], ["positional"], log2_points=12, d=40),
    "compare": lambda: dp.compare(PAPER, [2.0], d=40, seeds=2, log2_points=12),
    "with_theory": lambda: _predicted(),
    "own model": lambda: dp.train(_own_model(), 2.0, 30, seeds=1, steps=5).mean,
}  # fmt: skip
#: Settings of JAX that a host program may have chosen.
SETTINGS = (
    ("jax_default_prng_impl", "rbg"), ("jax_threefry_partitionable", False),
    ("jax_numpy_dtype_promotion", "strict"), ("jax_numpy_rank_promotion", "raise"),
    ("jax_transfer_guard", "disallow"), ("jax_debug_nans", True), ("jax_debug_infs", True),
    ("jax_disable_jit", True), ("jax_enable_x64", True), ("jax_enable_x64", False),
)  # fmt: skip


def _predicted() -> Any:
    runs = dp.train(PAPER, **POINT, steps=20)
    return dp.analysis.with_theory(runs, log2_points=12).theory["semantic"].values


def _own_model() -> dp.Model:
    def teacher(h: Any) -> Any:
        return 0.7 * jax.nn.softmax(h @ h.T, axis=-1) + 0.3 * np.eye(3, dtype=np.float32)

    return dp.Model(teacher, dp.softmax_attention, length=3, positions=np.eye(3))


@contextmanager
def setting(name: str, value: Any) -> Iterator[None]:
    """Choose a setting for all threads."""
    before = getattr(jax.config, name)
    jax.config.update(name, value)
    try:
        yield
    finally:
        if name == "jax_transfer_guard":  # resetting needs a transfer of its own
            before = before or "allow"
        jax.config.update(name, before)


@contextmanager
def strict_numpy() -> Iterator[None]:
    """NumPy raises, warnings are errors."""
    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def in_a_thread(call: Callable[[], Any]) -> Any:
    """Compute in a new thread, which starts with the global settings."""
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(_caught(call)))
    thread.start()
    thread.join()
    return _returned(results[0])


def in_a_loop(call: Callable[[], Any]) -> Any:
    """Compute twice at once in threads of an event loop."""

    async def both() -> list[Any]:
        return await asyncio.gather(*[asyncio.to_thread(call) for _ in range(2)])

    first, second = asyncio.run(both())
    same(first, second)
    return first


def _caught(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except BaseException as error:
        return error


def _returned(result: Any) -> Any:
    if isinstance(result, BaseException):
        raise result
    return result


def numbers(result: Any) -> list[np.ndarray]:
    """All floating-point numbers of a result except times."""
    if hasattr(result, "data_vars"):
        names = [name for name in result.data_vars if "seconds" not in str(name)]
        return [result[name].values for name in names if result[name].dtype.kind == "f"]
    return [np.asarray(leaf) for leaf in jax.tree.leaves(result)]


def same(first: Any, second: Any) -> None:
    """Require the same numbers, to the last digits."""
    pairs = list(zip(numbers(first), numbers(second), strict=True))
    require(bool(pairs), "no numbers")
    for a, b in pairs:
        close = np.allclose(a, b, rtol=1e-9, atol=1e-12, equal_nan=True)
        require(close, f"other numbers: {np.ravel(a)[:3]} and {np.ravel(b)[:3]}")


def cases(trial: Trial) -> None:
    names = list(CALLS)[: max(1, trial.cases)]
    expected = {name: CALLS[name]() for name in names}
    for name in names:
        call = CALLS[name]
        for key, value in SETTINGS:
            with trial.case((name, key, value)), setting(key, value):
                same(expected[name], call())
        with trial.case((name, "strict NumPy")), strict_numpy():
            same(expected[name], call())
    chosen = names if trial.cases >= len(names) else names[:2]
    for name in chosen:
        key, value = trial.choose(SETTINGS)
        with trial.case((name, key, value, "in a thread")), setting(key, value):
            same(expected[name], in_a_thread(CALLS[name]))
        with trial.case((name, key, value, "in an event loop")), setting(key, value):
            same(expected[name], in_a_loop(CALLS[name]))


if __name__ == "__main__":
    about = "Settings of JAX and NumPy in the host program, threads and event loops."
    run(Trial("host settings", about, len(CALLS)), cases)
