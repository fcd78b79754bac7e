"""Results of the cells of a grid, in memory and in a file."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from dotphase.experiments.training.throughput import Throughput
from dotphase.finite_d.overlaps import mechanisms_of
from dotphase.model import Model
from dotphase.model.linear_layer import linear_test_error
from dotphase.numerics.outcome import Outcome
from dotphase.storage.provenance import describe_model, provenance
from dotphase.storage.result_cache import CachedResult

#: Seconds between two times that the file is written.
WRITE_INTERVAL = 5.0

FIELDS = (
    "train_loss", "test_error", "m", "theta", "q", "semantic_alignment",
    "positional_alignment", "gradient_norm", "iterations", "outcome",
)  # fmt: skip


@dataclass
class GridResults:
    """Results of the finished cells; with a path also in a file."""

    coords: dict[str, list[Any]]  #: alpha, the parameter, seed and start
    config: dict[str, Any]  #: dimension and settings, which the file must share
    members: tuple[Model, ...]  #: models of the family
    path: Path | None  #: the file, None for none
    done: np.ndarray = field(init=False)  #: cells (alpha, value, seed) that are finished
    values: dict[str, np.ndarray] = field(init=False)  #: arrays over all coordinates, by field
    written: float = field(init=False, default_factory=time.monotonic)

    def __post_init__(self) -> None:
        shape = tuple(len(values) for values in self.coords.values())
        self.done = np.zeros(shape[:3], bool)
        self.values = {name: np.full(shape, np.nan) for name in FIELDS}
        stored = None if self.path is None else self._file(self.path).arrays()
        if stored is not None:
            self.done = stored["done"]
            self.values = {name: stored[name] for name in FIELDS}

    def _file(self, path: Path) -> CachedResult:
        models = [describe_model(member) for member in self.members]
        return CachedResult(path, {**self.config, **self.coords, "models": models})

    def add(self, indices: Sequence[tuple[int, ...]], results: dict[str, np.ndarray]) -> None:
        """Add the results of some cells; write the file if the last time is long ago."""
        for row, index in enumerate(indices):
            for name in FIELDS:
                self.values[name][index] = results[name][row]
            self.done[index] = True
        if time.monotonic() - self.written > WRITE_INTERVAL:
            self._write()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Write the file when the context ends, also by an interrupt."""
        try:
            yield
        finally:
            self._write()

    def _write(self) -> None:
        if self.path is not None:
            self._file(self.path).store_arrays({"done": self.done, **self.values})
        self.written = time.monotonic()

    def dataset(self, speed: Throughput) -> xr.Dataset:
        """Return all cells, with settings, common parameters and throughput as attributes."""
        axes = tuple(self.coords)
        parameter = axes[1]
        variables: dict[str, Any] = {name: (axes, value) for name, value in self.values.items()}
        converged = self.values["outcome"] == Outcome.CONVERGED
        converged &= np.isfinite(self.values["test_error"])
        variables["converged"] = (axes, converged.astype(np.int8))
        variables["mechanism"] = (axes, mechanisms_of(self.values, self.config["d"]))
        linear = [linear_test_error(member) for member in self.members]
        variables["linear_test_error"] = (parameter, np.asarray(linear))
        descriptions = [provenance(member, **self.config) for member in self.members]
        common = {
            name: value
            for name, value in descriptions[0].items()
            if all(description[name] == value for description in descriptions)
        }
        return xr.Dataset(
            variables,
            coords={**self.coords, "seed": np.asarray(self.coords["seed"], np.int32)},
            attrs=common | {"parameter": parameter} | speed._asdict(),
        )
