"""What was computed once and need not be computed again: a file that knows what was asked.

Everything that resumes is kept in this way. A file holds arrays or a dataset together with what
was asked for, as JSON. It is read back only for the same question; what to do with the answer
to another one is for the caller to say: refuse it, or compute and replace it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from dotphase.errors import InvalidInput
from dotphase.storage.files import read_arrays, read_dataset, write_arrays, write_dataset

#: Under which name a file says what was asked for.
ASKED = "asked"


def as_asked(asked: Mapping[str, Any]) -> dict[str, Any]:
    """A question as it compares with one that was read back."""
    plain: dict[str, Any] = json.loads(json.dumps(dict(asked), default=_plain, sort_keys=True))
    return plain


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)


def difference(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> str | None:
    """In words, the first thing in which two questions differ; None if they are the same."""
    for name in sorted(found.keys() | wanted.keys()):
        if found.get(name) != wanted.get(name):
            return f"{name}: {_brief(found.get(name))} there, {_brief(wanted.get(name))} here"
    return None


def _brief(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


@dataclass(frozen=True)
class Kept:
    """A file with an answer and the question it belongs to.

    Attributes
    ----------
    path : an .npz file for arrays, an .nc file for a dataset
    asked : what is asked for; anything that JSON can hold
    field : what errors call the file
    """

    path: Path
    asked: Mapping[str, Any]
    field: str = "out"

    def arrays(self) -> dict[str, np.ndarray] | None:
        """The arrays, None where there is no file yet; `InvalidInput` for another question."""
        if not self.path.exists():
            return None
        found = read_arrays(self.path, self.field)
        self._refuse_other(json.loads(str(found.pop(ASKED, "{}"))))
        return found

    def keep_arrays(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Replace the file."""
        asked = np.asarray(json.dumps(as_asked(self.asked)))
        write_arrays(self.path, {**arrays, ASKED: asked})

    def dataset(self) -> xr.Dataset | None:
        """The dataset; None where there is none for this question."""
        if not self.path.exists():
            return None
        try:
            found = read_dataset(self.path)
        except (OSError, ValueError, KeyError):
            return None  # damaged: it is computed again
        same = json.loads(found.attrs.get(ASKED, "{}")) == as_asked(self.asked)
        return found if same else None

    def keep_dataset(self, dataset: xr.Dataset) -> xr.Dataset:
        """Replace the file; what was written is read back, as a later run will see it."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        asked = json.dumps(as_asked(self.asked))
        write_dataset(dataset.assign_attrs({ASKED: asked}), self.path)
        return read_dataset(self.path)

    def _refuse_other(self, found: Mapping[str, Any]) -> None:
        other = difference(found, as_asked(self.asked))
        if other is not None:
            rule = f"holds the answer to another question ({other}): use another name"
            raise InvalidInput(self.field, str(self.path), rule)
