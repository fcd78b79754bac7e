"""Parts of the reproduction on disk: what was computed once is not computed again."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import xarray as xr

from dotphase.storage.files import write_dataset

#: Attribute of a stored dataset that says what was asked for.
ASKED = "asked"


class Parts:
    """The datasets of one item, kept in a folder of their own.

    Parameters
    ----------
    folder : path
        Where they are kept.
    report : callable, optional
        Called with the name of a part before it is computed.
    """

    def __init__(self, folder: Path, report: Callable[[str], None] | None = None) -> None:
        self.folder = folder
        self.report = report or (lambda text: None)

    def get(
        self, name: str, asked: Mapping[str, Any], compute: Callable[[], xr.Dataset]
    ) -> xr.Dataset:
        """A dataset from the folder if the same was asked for, computed and kept otherwise."""
        wanted = json.dumps({key: asked[key] for key in sorted(asked)}, default=_plain)
        path = self.folder / f"{name}.nc"
        if path.exists():
            with xr.open_dataset(path) as stored:
                if stored.attrs.get(ASKED) == wanted:
                    return stored.load()
        self.report(name)
        dataset = compute()
        dataset.attrs[ASKED] = wanted
        self.folder.mkdir(parents=True, exist_ok=True)
        write_dataset(dataset, path)
        # Read back, so that a resumed run sees just what the first one saw.
        with xr.open_dataset(path) as stored:
            return stored.load()

    def path(self, name: str) -> Path:
        """A path in the folder for an engine that keeps its own unfinished work."""
        self.folder.mkdir(parents=True, exist_ok=True)
        return self.folder / name


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)
