"""Figures, each one function of a dataset."""

import os
from importlib.util import find_spec

_backend = os.environ.get("MPLBACKEND", "")
_package = "matplotlib_inline" if _backend == "inline" else _backend.removeprefix("module://")
if _package != _backend and find_spec(_package.partition(".")[0]) is None:
    # Inherited from a notebook with another environment: Matplotlib could not be imported.
    del os.environ["MPLBACKEND"]
    import matplotlib  # noqa: F401

    os.environ["MPLBACKEND"] = _backend
