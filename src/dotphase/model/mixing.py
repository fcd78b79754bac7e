"""Positional attention matrices A by name, as an array, or from a file, without JAX."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from dotphase.config.validation import finite_array
from dotphase.errors import InvalidInput

#: Positional attention matrices A used in the paper, by name.
MIXING = {"standard": ((0.6, 0.4), (0.4, 0.6)), "other": ((0.3, 0.7), (0.8, 0.2))}


def read_mixing(mixing: Any, length: int | None = None) -> Float[np.ndarray, "tokens tokens"]:
    """Read a positional attention matrix from a name, an array or a JSON file.

    Parameters
    ----------
    mixing : {"standard", "other"}, (L, L) array, or path of a JSON file
        The file holds the matrix as a list of rows.
    length : int, optional
        Required number of tokens L.
    """
    size = "square" if length is None else f"{length} x {length}"
    allowed = f"must be standard, other, or a JSON file holding a {size} list of rows"
    value = mixing
    if isinstance(mixing, str) and mixing in MIXING:
        value = MIXING[mixing]
        if length not in (None, 2):
            raise InvalidInput("mixing", mixing, f"must be standard or a {size} matrix")
    elif isinstance(mixing, str | Path):
        if not str(mixing).endswith(".json"):
            raise InvalidInput("mixing", str(mixing), allowed)
        try:
            value = json.loads(Path(mixing).read_text(encoding="utf-8-sig"))
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise InvalidInput("mixing", str(mixing), f"{allowed} ({reason})") from None
        except (ValueError, RecursionError):
            raise InvalidInput("mixing", str(mixing), f"{allowed} (not valid JSON)") from None
    numbers = finite_array(value)
    matrix = np.empty(0) if numbers is None else numbers
    is_square = matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1] > 0
    if not is_square or length not in (None, len(matrix)):
        raise InvalidInput("mixing", value, f"must be a {size} matrix of finite numbers")
    if np.any(matrix < 0) or not np.allclose(matrix.sum(axis=1), 1.0, rtol=0, atol=1e-8):
        rule = "must have entries >= 0 and rows that each sum to 1"
        raise InvalidInput("mixing", matrix.tolist(), rule)
    return matrix
