"""The state of training on disk, replaced whole after every epoch.

A checkpoint is an .npz of plain arrays and the settings as JSON text; nothing in it is
executed when it is read. It is refused where the settings differ, but for the number of epochs:
training goes on from it in the same way whatever that is.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from dotphase.errors import InvalidInput
from dotphase.histogram.train import Lane

#: Version of what is in the file.
LAYOUT = 1


@dataclass(frozen=True)
class Checkpoint:
    """A file that keeps the state of training with the given settings.

    Attributes
    ----------
    path, settings : where it is, and what it must have been written with
    most : most epochs that the state may have; None for any number
    """

    path: Path
    settings: Mapping[str, Any]
    most: int | None = None

    def load(self, like: Lane) -> tuple[Lane, np.ndarray] | None:
        """State and learning curves, or None where there is no file yet."""
        if not self.path.exists():
            return None
        arrays = read_arrays(self.path, "checkpoint")
        about = json.loads(str(arrays.get("about", "{}")))
        if about != self._about():
            raise InvalidInput(
                "checkpoint",
                str(self.path),
                "was written with other settings; remove it or choose another folder"
                + _difference(about, self._about()),
            )
        if self.most is not None and len(arrays["curves"]) > self.most:
            allowed = f"must be at least the {len(arrays['curves'])} that {self.path} holds"
            raise InvalidInput("epochs", self.most, allowed)
        named, shape = jax.tree.flatten_with_path(like)
        leaves = []
        for path, leaf in named:
            found = arrays.get(jax.tree_util.keystr(path))
            if found is None or found.shape != leaf.shape or found.dtype != leaf.dtype:
                raise InvalidInput("checkpoint", str(self.path), "is not one of this version")
            leaves.append(found)
        return jax.tree.unflatten(shape, leaves), arrays["curves"]

    def save(self, lane: Lane, curves: np.ndarray) -> None:
        """Replace the file; a kill at any moment leaves the old one or the new one."""
        named = jax.tree.flatten_with_path(lane)[0]
        arrays = {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in named}
        about = json.dumps(self._about(), sort_keys=True)
        write_arrays(self.path, {**arrays, "curves": curves, "about": np.asarray(about)})

    def _about(self) -> dict[str, Any]:
        # Through JSON, so that it compares equal with what is read back.
        about: dict[str, Any] = json.loads(json.dumps({**self.settings, "layout": LAYOUT}))
        return about


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write an .npz whole or not at all."""
    # One name, so that what a kill leaves behind is overwritten by the next write.
    temporary = path.with_name(f".{path.name}.part")
    try:
        with temporary.open("wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def read_arrays(path: Path, field: str) -> dict[str, np.ndarray]:
    """The arrays of an .npz, which must hold no pickled objects; `InvalidInput` otherwise."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError, zipfile.BadZipFile, AttributeError):
        raise InvalidInput(field, str(path), "must be an .npz file of plain arrays") from None


def _difference(found: dict[str, Any], wanted: dict[str, Any]) -> str:
    for name in sorted(found.keys() | wanted.keys()):
        if found.get(name) != wanted.get(name):
            return f" ({name}: {found.get(name)} there, {wanted.get(name)} here)"
    return ""
