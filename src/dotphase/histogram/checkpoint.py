"""The state of training on disk, replaced whole after every epoch."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import jax
import numpy as np

from dotphase.errors import InvalidInput
from dotphase.storage.files import Damaged, remove_leftovers
from dotphase.storage.result_cache import CachedResult

T = TypeVar("T")

#: Version of what is in the file.
LAYOUT = 1


@dataclass(frozen=True)
class Checkpoint:
    """A file that keeps the state of training with the given settings; refused with others.

    Attributes
    ----------
    path, settings : where it is, and what it must have been written with
    most : most epochs that the state may have; None for any number
    """

    path: Path
    settings: Mapping[str, Any]
    most: int | None = None

    @property
    def _kept(self) -> CachedResult:
        return CachedResult(self.path, {**self.settings, "layout": LAYOUT}, "checkpoint")

    def load(self, like: T) -> tuple[T, np.ndarray] | None:
        """State (a tree of arrays) and learning curves, or None where there is no file yet."""
        remove_leftovers(self.path)
        try:
            arrays = self._kept.arrays()
        except Damaged:  # what it held is computed again
            warnings.warn(f"{self.path} is damaged: training begins anew", stacklevel=2)
            return None
        if arrays is None:
            return None
        curves = arrays.pop("curves", np.empty(0))
        if self.most is not None and len(curves) > self.most:
            allowed = f"must be at least the {len(curves)} that {self.path} holds"
            raise InvalidInput("epochs", self.most, allowed)
        named, shape = jax.tree.flatten_with_path(like)
        leaves = [arrays.get(jax.tree_util.keystr(path)) for path, _ in named]
        for found, (_, leaf) in zip(leaves, named, strict=True):
            if found is None or found.shape != leaf.shape or found.dtype != leaf.dtype:
                raise InvalidInput("checkpoint", str(self.path), "is not one of this version")
        return jax.tree.unflatten(shape, leaves), curves

    def save(self, state: Any, curves: np.ndarray) -> None:
        """Replace the file; a kill at any moment leaves the old one or the new one."""
        named = jax.tree.flatten_with_path(state)[0]
        arrays = {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in named}
        self._kept.store_arrays({**arrays, "curves": curves})
