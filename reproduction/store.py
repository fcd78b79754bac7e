"""Parts of the reproduction on disk: each is computed once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import xarray as xr

from dotphase import Model, Study, run_study
from dotphase.results import CachedResult, config_hash, describe_model

#: Parameters of functions under their names in stored configurations. The committed full report was
#: computed with them.
STORED_PARAMETERS = {"curve": {"max_log2_points": "most"}, "outcomes": {"seeds": "draws"}}
#: The published runs and those of that report draw teachers of random norm. Its stored
#: configurations leave that out.
RANDOM_NORM: dict[str, Any] = {"teacher_norm": "random"}
#: Variables of datasets of that report, and their names today.
STORED_VARIABLES = {"crossing": "alpha_c", "crossing_stderr": "alpha_c_stderr"}


class Parts:
    """The datasets of one item, stored in a folder.

    Parameters
    ----------
    folder : path
        Folder of the files.
    report : callable, optional
        Receives the name of a part before it is computed.
    where : mapping, optional
        Arguments of `run_study` for the place of computation; by default this process.
    """

    def __init__(
        self,
        folder: Path,
        report: Callable[[str], None] | None = None,
        where: Mapping[str, Any] | None = None,
    ) -> None:
        self.folder = folder
        self.report = report or (lambda text: None)
        self.where = {"engine": "serial"} if where is None else dict(where)

    def get(
        self, name: str, config: Mapping[str, Any], compute: Callable[[], xr.Dataset]
    ) -> xr.Dataset:
        """Return the stored dataset of this configuration, or compute and store it."""

        def work() -> xr.Dataset:
            self.report(name)
            return compute()

        dataset = CachedResult(self.folder / f"{name}.nc", config).get(work)
        renamed = {old: new for old, new in STORED_VARIABLES.items() if old in dataset}
        return dataset.rename(renamed)

    def call(
        self, name: str, function: Callable[..., xr.Dataset], *arguments: Any, **config: Any
    ) -> xr.Dataset:
        """Return the dataset of a function call; models and keywords are its configuration."""
        models = [describe_model(argument) for argument in arguments if isinstance(argument, Model)]
        compute = partial(function, *arguments, **config)
        stored_names = STORED_PARAMETERS.get(getattr(function, "__name__", ""), {})
        stored = {
            stored_names.get(key, key): value
            for key, value in config.items()
            if key not in RANDOM_NORM
        }
        return self.get(name, {**stored, "models": models}, compute)

    def study(
        self,
        name: str,
        task: str,
        fixed: Mapping[str, Any],
        sweep: Mapping[str, Sequence[Any]] | None = None,
        seeds: int | None = None,
    ) -> xr.Dataset:
        """Return the dataset of a study, stored point by point; without `seeds`, no seed axis."""
        study = Study(task, fixed, sweep, seeds or 1)
        folder = self.path(f"{name}-{config_hash(study.to_dict())}")

        reported = -1

        def follow(now: Any) -> None:
            nonlocal reported
            tenth = 10 * now.done // now.total
            if reported < tenth < 10:
                reported = tenth
                self.report(f"{name}, {now.done} of {now.total} points")

        # A single point has all cores of this process to itself.
        where = self.where if study.size > 1 else {"engine": "serial"}
        dataset = run_study(study, folder, progress=follow, **where)
        failed = int((~dataset["done"]).sum())
        if failed:
            reason = next(str(text) for text in dataset["reason"].values.ravel() if text)
            raise RuntimeError(f"{failed} of {study.size} points of {name} failed: {reason}")
        return dataset if seeds else dataset.isel(seed=0, drop=True)

    def path(self, name: str) -> Path:
        """Return a path for the unfinished work of a function that can resume."""
        self.folder.mkdir(parents=True, exist_ok=True)
        return self.folder / name
