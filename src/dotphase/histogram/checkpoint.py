"""Checkpoint of a training: its state in a file that every epoch replaces atomically."""

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

#: Version of the arrays in the file.
LAYOUT = 2


@dataclass(frozen=True)
class Checkpoint:
    """File with the state of a training; a file of another configuration is refused."""

    path: Path  #: the file
    config: Mapping[str, Any]  #: configuration of the training, stored with the state
    #: largest number of epochs that a loaded state may have; None for any number
    max_epochs: int | None = None

    @property
    def _file(self) -> CachedResult:
        return CachedResult(self.path, {**self.config, "layout": LAYOUT}, "checkpoint")

    def load(self, template: T) -> tuple[T, np.ndarray] | None:
        """Return the state, a tree of arrays like `template`, and the learning curves.

        Without a file, or if it is damaged, return None.
        """
        remove_leftovers(self.path)
        try:
            arrays = self._file.arrays()
        except Damaged:
            warnings.warn(f"{self.path} is damaged: training starts again", stacklevel=2)
            return None
        if arrays is None:
            return None
        curves = arrays.pop("curves", np.empty(0))
        if self.max_epochs is not None and len(curves) > self.max_epochs:
            allowed = f"must be at least {len(curves)}, the number of epochs in {self.path}"
            raise InvalidInput("epochs", self.max_epochs, allowed)
        expected, structure = jax.tree.flatten_with_path(template)
        leaves = [arrays.get(jax.tree_util.keystr(path)) for path, _ in expected]
        for leaf, (_, like) in zip(leaves, expected, strict=True):
            if leaf is None or leaf.shape != like.shape or leaf.dtype != like.dtype:
                raise InvalidInput("checkpoint", str(self.path), "must be from this version")
        return jax.tree.unflatten(structure, leaves), curves

    def save(self, state: Any, curves: np.ndarray) -> None:
        """Replace the file; if the process is killed, the old or the new one remains."""
        leaves = jax.tree.flatten_with_path(state)[0]
        arrays = {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in leaves}
        self._file.store_arrays({**arrays, "curves": curves})
