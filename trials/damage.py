"""Flipped bits, cut and emptied files are refused or computed again, and never used as data."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from common import Trial, require, run

import dotphase as dp
from dotphase.histogram import load_network, save_network
from dotphase.storage.journal import DATABASE
from dotphase.storage.result_cache import CachedResult

STUDY = dp.Study("regression", sweep={"alpha": np.linspace(0.2, 3, 12).tolist()}, seeds=1)


def hurt(trial: Trial, file: Path) -> str:
    """Damage a file at random; return a description of the damage."""
    data = bytearray(file.read_bytes())
    kind = trial.rng.random()
    position = int(trial.rng.integers(len(data)))
    if kind < 0.8:
        bit = int(trial.rng.integers(8))
        data[position] ^= 1 << bit
        what = f"bit {bit} of byte {position}"
    elif kind < 0.9:
        data = data[:position]
        what = f"cut at {position}"
    elif kind < 0.95:
        end = min(len(data), position + 4096)
        data[position:end] = bytes(end - position)
        what = f"zeros from {position}"
    else:
        data = bytearray()
        what = "emptied"
    file.write_bytes(bytes(data))
    return f"{file.name}, {what}"


def same(dataset: xr.Dataset, expected: xr.Dataset) -> bool:
    """Return True if all finished points have their true values."""
    if dict(dataset.sizes) != dict(expected.sizes):
        return False
    done = dataset["done"].values
    return all(
        np.array_equal(dataset[name].values[done], expected[name].values[done], equal_nan=True)
        for name in expected.data_vars
        if name not in ("done", "reason") and expected[name].dtype.kind in "fib"
    )


def journals(trial: Trial, count: int, expected: xr.Dataset) -> None:
    """The journal of a study."""
    for _ in range(count):
        shutil.rmtree("hurt", ignore_errors=True)
        shutil.copytree("intact", "hurt")
        what = hurt(trial, Path("hurt") / DATABASE)
        with trial.case(what):
            try:
                require(same(dp.read_study("hurt"), expected), "other numbers are read")
            except dp.InvalidInput as error:
                require("\n" not in str(error), "more than one line")
            try:
                again = dp.run_study(STUDY, "hurt", engine="serial")
            except dp.InvalidInput as error:
                require("\n" not in str(error), "more than one line")
            else:
                require(
                    bool(again["done"].all()) and same(again, expected), "other numbers at the end"
                )


def other_files(trial: Trial, count: int) -> None:
    """Cached results and networks."""
    true = xr.Dataset({"v": ("x", np.arange(500.0))})
    weights = load_network(save_network(dp.histogram.shipped("semantic"), Path("network.npz")))
    for _ in range(count):
        which = trial.choose(("dataset", "arrays", "network"))
        if which == "dataset":
            cached = CachedResult(Path("cached.nc"), {"n": 1})
            cached.store_dataset(true)
            what = hurt(trial, cached.path)
            with trial.case(what):
                dataset = cached.get(lambda: true)
                require(
                    bool(np.array_equal(dataset["v"].values, true["v"].values)), "other numbers"
                )
        elif which == "arrays":
            cached = CachedResult(Path("cached.npz"), {"n": 1})
            cached.store_arrays({"v": true["v"].values})
            what = hurt(trial, cached.path)
            with trial.case(what):
                _arrays(cached, true["v"].values)
        else:
            save_network(weights, Path("network.npz"))
            what = hurt(trial, Path("network.npz"))
            with trial.case(what):
                _network(Path("network.npz"), weights)


def _arrays(cached: CachedResult, true: np.ndarray) -> None:
    try:
        arrays = cached.arrays()
    except dp.InvalidInput as error:
        require("\n" not in str(error), "more than one line")
        return
    require(arrays is not None and np.array_equal(arrays["v"], true), "other numbers")


def _network(path: Path, true: Any) -> None:
    import jax

    try:
        network = load_network(path)
    except dp.InvalidInput as error:
        require("\n" not in str(error), "more than one line")
        return
    pairs = zip(jax.tree.leaves(network), jax.tree.leaves(true), strict=True)
    require(all(np.array_equal(a, b) for a, b in pairs), "other numbers")


def texts(trial: Trial, count: int) -> None:
    """Matrices in JSON are read correctly or refused in one line."""
    for _ in range(count):
        file = Path("mixing.json")
        file.write_text(json.dumps([[0.6, 0.4], [0.4, 0.6]]))
        what = hurt(trial, file)
        with trial.case(what):
            try:
                dp.positional_semantic(mixing=str(file))
            except dp.InvalidInput as error:
                require("\n" not in str(error), "more than one line")


def cases(trial: Trial) -> None:
    expected = dp.run_study(STUDY, "intact", engine="serial")
    journals(trial, round(0.6 * trial.cases), expected)
    other_files(trial, round(0.3 * trial.cases))
    texts(trial, trial.cases - trial.tried)


if __name__ == "__main__":
    run(Trial("damage", "Flipped bits, cuts and zeros in journals and files.", 500), cases)
