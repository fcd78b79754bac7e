"""Memoize functions of models by the values of their arguments.

A model is a tree of functions and arrays. Two trees have the same key if their functions are the
same objects and their arrays contain the same numbers now. An array that was changed in place
therefore has another key.
"""

from collections.abc import Callable, Hashable
from functools import lru_cache, wraps
from typing import Any, ParamSpec, TypeVar

import jax
import numpy as np

P = ParamSpec("P")
T = TypeVar("T")


class Identity:
    """Key that equals only keys of the same object, and keeps that object alive."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


class _Call:
    """Arguments of a call, compared by their key alone."""

    def __init__(self, key: Hashable, args: Any, kwargs: Any) -> None:
        self.key, self.args, self.kwargs = key, args, kwargs

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Call) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


def tree_key(tree: Any) -> Hashable:
    """Return a key that is equal for trees with the same functions and the same numbers."""
    leaves, structure = jax.tree.flatten(tree)
    return structure, tuple(_leaf_key(leaf) for leaf in leaves)


def _leaf_key(leaf: Any) -> Hashable:
    if isinstance(leaf, np.ndarray | np.generic | jax.Array):
        values = np.asarray(leaf)
        return values.shape, values.dtype.str, values.tobytes()
    return (type(leaf), leaf) if isinstance(leaf, bool | int | float | str) else Identity(leaf)


def memoize(max_size: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Keep the last `max_size` results of a function of trees; callers must not change them."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @lru_cache(maxsize=max_size)
        def cached(call: _Call) -> T:
            return function(*call.args, **call.kwargs)

        @wraps(function)
        def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
            return cached(_Call(tree_key((args, kwargs)), args, kwargs))

        return wrapped

    return decorate
