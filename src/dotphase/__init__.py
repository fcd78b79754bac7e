"""Asymptotic theory, message passing and training for a solvable model of attention.

>>> import dotphase as dp
>>> model = dp.positional_semantic(omega=0.3)
>>> print(dp.solve(model, alpha=1.5))  # theory in the limit of large d, with error bars
>>> print(dp.train(model, alpha=1.5, d=200, seeds=4))  # students trained at finite d
>>> dataset = dp.curve(model, [0.5, 1.0, 1.5])  # all branches, as an xarray dataset

`alpha` is the number of sentences per dimension, `d` the dimension of a token. Other first calls:
`dp.critical`, `dp.curve`, `dp.dynamics`, `dp.compare`. Computations run in float64 without
changing JAX's global settings.
"""

from __future__ import annotations

from dotphase._lazy import attach_stub

_load, __dir__, __all__ = attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    value = _version() if name == "__version__" else _load(name)
    globals()[name] = value
    return value


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version  # slow to import

    try:
        return version("dotphase")
    except PackageNotFoundError:  # run from a checkout
        return "0.0.0+source"
