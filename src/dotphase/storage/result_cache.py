"""Files with a result and its configuration, so that a result is computed only once.

Computations that can resume store their results in such files, or point by point in a
`dotphase.storage.journal`. A file contains arrays or a dataset, and the configuration in JSON. It
is read only for the same configuration; otherwise arrays are refused and datasets computed again.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from dotphase.errors import InvalidInput
from dotphase.storage import files
from dotphase.storage.run_config import config_diff, to_json

#: Attributes of a dataset with its configuration and its checksum.
CONFIG, CHECKSUM = "asked", "mark"


@dataclass(frozen=True)
class CachedResult:
    """A file with a result and its configuration.

    Attributes
    ----------
    path : an .npz file for arrays, an .nc file for a dataset
    config : configuration of the result, in values that JSON can represent
    field : name of the file in errors

    Examples
    --------
    >>> import pathlib
    >>> model = dp.positional_semantic()
    >>> cached = dp.results.CachedResult(pathlib.Path("curve.nc"), {"alphas": [1.5, 2.0]})
    >>> curve = cached.get(lambda: dp.curve(model, [1.5, 2.0], log2_points=12))
    >>> cached.get(lambda: 1 / 0).identical(curve)
    True
    """

    path: Path
    config: Mapping[str, Any]
    field: str = "out"

    def arrays(self) -> dict[str, np.ndarray] | None:
        """Return the arrays, None without a file; `InvalidInput` for another configuration."""
        if not self.path.exists():
            return None
        arrays = files.read_arrays(self.path, self.field)
        difference = config_diff(files.pop_metadata(arrays), to_json(self.config))
        if difference is not None:
            rule = f"contains results of another configuration ({difference}): use another path"
            raise InvalidInput(self.field, str(self.path), rule)
        return arrays

    def store_arrays(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Write or replace the file of arrays."""
        files.write_arrays(self.path, arrays, metadata=to_json(self.config))

    def dataset(self) -> xr.Dataset | None:
        """Return the dataset; None without a file, for another configuration or damaged data."""
        if not self.path.exists():
            return None
        try:
            dataset = files.read_dataset(self.path)
            config = json.loads(dataset.attrs[CONFIG])
            checksum = files.dataset_checksum(dataset)
        except files.UNREADABLE:
            return None
        # Files of earlier versions have no checksum.
        is_intact = dataset.attrs.get(CHECKSUM, checksum) == checksum
        return dataset if is_intact and config == to_json(self.config) else None

    def store_dataset(self, dataset: xr.Dataset) -> xr.Dataset:
        """Write or replace the file of a dataset; return the dataset as later runs read it."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        dataset = files.round_trip(dataset)
        config = json.dumps(to_json(self.config))
        attributes = {CONFIG: config, CHECKSUM: files.dataset_checksum(dataset)}
        files.write_dataset(dataset.assign_attrs(attributes), self.path)
        return files.read_dataset(self.path)

    def get(self, compute: Callable[[], xr.Dataset]) -> xr.Dataset:
        """Return the stored dataset, or compute and store it."""
        dataset = self.dataset()
        return self.store_dataset(compute()) if dataset is None else dataset
