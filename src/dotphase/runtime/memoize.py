"""Results cached by the values of what they were computed from.

A model is a tree of functions and arrays. Two trees are the same here if their functions are the
same objects and their arrays hold the same numbers now, so that an array changed in place is
never answered with what belonged to its old numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache, wraps
from typing import Any, ParamSpec, TypeVar

import jax
import numpy as np

P = ParamSpec("P")
T = TypeVar("T")


class Identity:
    """A key that is equal for the same object only, and keeps that object alive."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


class _Call:
    """Arguments together with their key, by which alone they are compared."""

    def __init__(self, key: Hashable, args: Any, kwargs: Any) -> None:
        self.key, self.args, self.kwargs = key, args, kwargs

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Call) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


def tree_key(tree: Any) -> Hashable:
    """What two trees share that hold the same functions and the same numbers."""
    leaves, shape = jax.tree.flatten(tree)
    return shape, tuple(_leaf(leaf) for leaf in leaves)


def _leaf(leaf: Any) -> Hashable:
    if isinstance(leaf, np.ndarray | np.generic | jax.Array):
        values = np.asarray(leaf)
        return values.shape, values.dtype.str, values.tobytes()
    return (type(leaf), leaf) if isinstance(leaf, bool | int | float | str) else Identity(leaf)


def memoize(most: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Keep the last `most` results of a function of trees; they must not be changed."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @lru_cache(maxsize=most)
        def cached(call: _Call) -> T:
            return function(*call.args, **call.kwargs)

        @wraps(function)
        def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
            return cached(_Call(tree_key((args, kwargs)), args, kwargs))

        return wrapped

    return decorate
