"""Fixtures shared by the tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import jax
import numpy as np
import pytest

import dotphase as dp

REFERENCE = Path(__file__).resolve().parents[2] / "shared" / "reference"


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    """The tests look inside the package, where everything is computed in float64."""
    with jax.enable_x64(True):
        yield


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20240206)


@pytest.fixture(scope="session")
def paper() -> dp.Model:
    """The model of the paper at omega = .3."""
    return dp.positional_semantic()


@pytest.fixture
def reference() -> Path:
    """Folder of reference numbers, where a checkout has one beside it."""
    if not REFERENCE.is_dir():
        pytest.skip("no reference numbers beside this checkout")
    return REFERENCE
