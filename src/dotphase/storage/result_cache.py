"""What was computed once and need not be computed again: a file that knows what was asked.

Everything that resumes is kept in this way, or, point by point, in a `storage.journal`. A file
holds arrays or a dataset together with what was asked for, as JSON. It is read back only for the
same question; the answer to another one is refused, or computed anew, as the caller chooses.
"""

from __future__ import annotations

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

#: Attributes of a dataset that say what was asked for, and whether it is as it was written.
ASKED, MARK = "asked", "mark"


@dataclass(frozen=True)
class CachedResult:
    """A file with an answer and the question it belongs to.

    Attributes
    ----------
    path : an .npz file for arrays, an .nc file for a dataset
    asked : what is asked for; anything that JSON can hold
    field : what errors call the file

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
    asked: Mapping[str, Any]
    field: str = "out"

    def arrays(self) -> dict[str, np.ndarray] | None:
        """The arrays, None where there is no file yet; `InvalidInput` for another question."""
        if not self.path.exists():
            return None
        arrays = files.read_arrays(self.path, self.field)
        other = config_diff(files.take_metadata(arrays), to_json(self.asked))
        if other is not None:
            rule = (
                f"contains results of another configuration ({other}): use another name or folder"
            )
            raise InvalidInput(self.field, str(self.path), rule)
        return arrays

    def store_arrays(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Replace the file."""
        files.write_arrays(self.path, arrays, about=to_json(self.asked))

    def dataset(self) -> xr.Dataset | None:
        """The dataset; None where there is none for this question, or the file is damaged."""
        if not self.path.exists():
            return None
        try:
            found = files.read_dataset(self.path)
            asked = json.loads(found.attrs[ASKED])
            # Files of earlier versions have no mark.
            if found.attrs.get(MARK, digest := files.digest_of(found)) != digest:
                return None
        except files.UNREADABLE:
            return None
        return found if asked == to_json(self.asked) else None

    def store_dataset(self, dataset: xr.Dataset) -> xr.Dataset:
        """Replace the file; what was written is read back, as a later run will see it."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        asked = json.dumps(to_json(self.asked))
        found = files.as_read_back(dataset)
        about = {ASKED: asked, MARK: files.digest_of(found)}
        files.write_dataset(found.assign_attrs(about), self.path)
        return files.read_dataset(self.path)

    def get(self, compute: Callable[[], xr.Dataset]) -> xr.Dataset:
        """The dataset, computed and kept if it is not there."""
        found = self.dataset()
        return self.store_dataset(compute()) if found is None else found
