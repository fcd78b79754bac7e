"""Parts of the reproduction on disk: what was computed once is not computed again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import xarray as xr

from dotphase import Model, Study, run_study
from dotphase.results import CachedResult, config_hash, describe_model


class Parts:
    """The datasets of one item, kept in a folder of their own.

    Parameters
    ----------
    folder : path
        Where they are kept.
    report : callable, optional
        Called with what is being computed.
    where : mapping, optional
        Arguments of `run_study` that say where the points of studies are computed; in this
        process if not given.
    """

    def __init__(
        self,
        folder: Path,
        report: Callable[[str], None] | None = None,
        where: Mapping[str, Any] | None = None,
    ) -> None:
        self.folder = folder
        self.report = report or (lambda text: None)
        self.where = {"on": "here"} if where is None else dict(where)

    def get(
        self, name: str, asked: Mapping[str, Any], compute: Callable[[], xr.Dataset]
    ) -> xr.Dataset:
        """A dataset from the folder if the same was asked for, computed and kept otherwise."""

        def work() -> xr.Dataset:
            self.report(name)
            return compute()

        return CachedResult(self.folder / f"{name}.nc", asked).get(work)

    def call(
        self, name: str, function: Callable[..., xr.Dataset], *arguments: Any, **asked: Any
    ) -> xr.Dataset:
        """The dataset that a function gives; models and named arguments are what is asked."""
        models = [describe_model(some) for some in arguments if isinstance(some, Model)]
        compute = partial(function, *arguments, **asked)
        return self.get(name, {**asked, "models": models}, compute)

    def study(
        self,
        name: str,
        task: str,
        fixed: Mapping[str, Any],
        sweep: Mapping[str, Sequence[Any]] | None = None,
        seeds: int | None = None,
    ) -> xr.Dataset:
        """The dataset of a study, kept point by point; it has no seeds if none are asked for."""
        study = Study(task, fixed, sweep, seeds or 1)
        folder = self.path(f"{name}-{config_hash(study.to_dict())}")

        told = -1

        def follow(now: Any) -> None:
            nonlocal told
            tenth = 10 * now.done // now.total
            if told < tenth < 10:
                told = tenth
                self.report(f"{name}, {now.done} of {now.total} points")

        # A single point has all cores of this process to itself.
        where = self.where if study.size > 1 else {"on": "here"}
        found = run_study(study, folder, progress=follow, **where)
        failed = int((~found["done"]).sum())
        if failed:
            reason = next(str(text) for text in found["reason"].values.ravel() if text)
            raise RuntimeError(f"{failed} of {study.size} points of {name} failed: {reason}")
        return found if seeds else found.isel(seed=0, drop=True)

    def path(self, name: str) -> Path:
        """A path in the folder for an engine that keeps its own unfinished work."""
        self.folder.mkdir(parents=True, exist_ok=True)
        return self.folder / name
