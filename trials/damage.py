"""Flipped bits, cut and emptied files: said and computed again, never taken for data."""

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
    """Damage a file somewhere; what was done."""
    data = bytearray(file.read_bytes())
    kind = trial.rng.random()
    place = int(trial.rng.integers(len(data)))
    if kind < 0.8:
        bit = int(trial.rng.integers(8))
        data[place] ^= 1 << bit
        what = f"bit {bit} of byte {place}"
    elif kind < 0.9:
        data = data[:place]
        what = f"cut at {place}"
    elif kind < 0.95:
        end = min(len(data), place + 4096)
        data[place:end] = bytes(end - place)
        what = f"zeros from {place}"
    else:
        data = bytearray()
        what = "emptied"
    file.write_bytes(bytes(data))
    return f"{file.name}, {what}"


def same(found: xr.Dataset, whole: xr.Dataset) -> bool:
    """Whether every point that is said to be done has its true values."""
    if dict(found.sizes) != dict(whole.sizes):
        return False
    done = found["done"].values
    return all(
        np.array_equal(found[name].values[done], whole[name].values[done], equal_nan=True)
        for name in whole.data_vars
        if name not in ("done", "reason") and whole[name].dtype.kind in "fib"
    )


def journals(trial: Trial, count: int, whole: xr.Dataset) -> None:
    """The journal of a study."""
    for _ in range(count):
        shutil.rmtree("hurt", ignore_errors=True)
        shutil.copytree("whole", "hurt")
        what = hurt(trial, Path("hurt") / DATABASE)
        with trial.case(what):
            try:
                require(same(dp.read_study("hurt"), whole), "other numbers are read")
            except dp.InvalidInput as error:
                require("\n" not in str(error), "more than one line")
            try:
                again = dp.run_study(STUDY, "hurt", engine="serial")
            except dp.InvalidInput as error:
                require("\n" not in str(error), "more than one line")
            else:
                require(
                    bool(again["done"].all()) and same(again, whole), "other numbers at the end"
                )


def kept_files(trial: Trial, count: int) -> None:
    """Files that know what was asked, networks, and tables of tokens."""
    true = xr.Dataset({"v": ("x", np.arange(500.0))})
    weights = load_network(save_network(dp.histogram.shipped("semantic"), Path("network.npz")))
    for _ in range(count):
        which = trial.choose(("dataset", "arrays", "network"))
        if which == "dataset":
            kept = CachedResult(Path("kept.nc"), {"n": 1})
            kept.store_dataset(true)
            what = hurt(trial, kept.path)
            with trial.case(what):
                found = kept.get(lambda: true)
                require(bool(np.array_equal(found["v"].values, true["v"].values)), "other numbers")
        elif which == "arrays":
            kept = CachedResult(Path("kept.npz"), {"n": 1})
            kept.store_arrays({"v": true["v"].values})
            what = hurt(trial, kept.path)
            with trial.case(what):
                _arrays(kept, true["v"].values)
        else:
            save_network(weights, Path("network.npz"))
            what = hurt(trial, Path("network.npz"))
            with trial.case(what):
                _network(Path("network.npz"), weights)


def _arrays(kept: CachedResult, true: np.ndarray) -> None:
    try:
        found = kept.arrays()
    except dp.InvalidInput as error:
        require("\n" not in str(error), "more than one line")
        return
    require(found is not None and np.array_equal(found["v"], true), "other numbers")


def _network(path: Path, true: Any) -> None:
    import jax

    try:
        found = load_network(path)
    except dp.InvalidInput as error:
        require("\n" not in str(error), "more than one line")
        return
    pairs = zip(jax.tree.leaves(found), jax.tree.leaves(true), strict=True)
    require(all(np.array_equal(a, b) for a, b in pairs), "other numbers")


def texts(trial: Trial, count: int) -> None:
    """Matrices in JSON: sound or refused, and then in one line."""
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
    whole = dp.run_study(STUDY, "whole", engine="serial")
    journals(trial, round(0.6 * trial.cases), whole)
    kept_files(trial, round(0.3 * trial.cases))
    texts(trial, trial.cases - trial.tried)


if __name__ == "__main__":
    run(Trial("damage", "Flipped bits, cuts and zeros in journals and files.", 500), cases)
