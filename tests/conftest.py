"""Fixtures shared by the tests."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from xdist.scheduler import LoadFileScheduling

import dotphase as dp
from compilation import QUICK, compile_averages_well
from dotphase.runtime.compilation_cache import VARIABLE, enable_for_process
from extensions.compiler import compile_quickly

ROOT = Path(__file__).resolve().parents[1]
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
# What one test has compiled serves all others: in the other processes, in the programs that tests
# start, and in later runs, in this checkout or another.
os.environ.setdefault(VARIABLE, str(CACHE / "dotphase" / "tests"))
enable_for_process()
# What is small is compiled as soon as it is written down and read.
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
compile_quickly()

# Programs that tests start are interrupted by them, also where this process was started with the
# signal ignored (from a script's background job) and would hand that on.
signal.signal(signal.SIGINT, signal.default_int_handler)

#: Rooms and files of which this is so (`runs_long`).
LONG = ("theory", "explorer", "study", "test_one_rsb.py", "test_curve.py", "test_diagram.py")

#: Files that take longest, which begin first so that no process is left with one at the end.
FIRST = (
    "docs/test_code.py", "reproduction/test_items.py", "theory/test_solve.py",
    "explorer/test_page.py",
    "dmft/test_run.py", "cli/test_model.py", "training/test_run.py", "study/test_run.py",
    "reproduction/test_quadrature.py", "theory/test_critical.py", "reproduction/test_beyond.py",
    "docs/test_breaking.py", "explorer/test_descent.py", "study/test_tasks.py", "cli/test_cli.py",
    "study/test_cluster.py", "gamp/test_run.py", "theory/test_multipliers.py",
    "experiments/test_grid.py", "theory/test_limits.py", "theory/test_state_evolution.py",
    "experiments/test_compare.py", "dmft/test_kernel.py", "figures/test_all.py",
    "histogram/test_mechanisms.py", "cli/test_histogram.py", "theory/test_bayes.py",
)  # fmt: skip

REFERENCE = ROOT.parent / "shared" / "reference"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files first."""
    place = {name: number for number, name in enumerate(FIRST)}
    items.sort(key=lambda item: place.get("/".join(item.path.parts[-2:]), len(FIRST)))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling:
    return BySharing(config, log)


class BySharing(LoadFileScheduling):
    """Each file in one process, and all of a package, whose files share what they are tested on."""

    def _split_scope(self, nodeid: str) -> str:
        file = Path(nodeid.split("::")[0])
        return str(file.parent if (ROOT / file.parent / "__init__.py").exists() else file)


def runs_long(path: Path) -> bool:
    """Whether averages of all models run for longer in a file than they are compiled."""
    return path.parent.name in LONG or path.name in LONG


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    """The tests look inside the package, where everything is computed in float64."""
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="module", autouse=True)
def quick_to_compile(request: pytest.FixtureRequest) -> Iterator[None]:
    """See `compilation`."""
    others = runs_long(request.path)
    with pytest.MonkeyPatch.context() as patch:
        compile_averages_well(others, patch.setattr)
        if not others:
            patch.setenv(QUICK.upper(), "1")  # for programs that tests start
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


@pytest.fixture(scope="session")
def three_tokens() -> dp.Model:
    """Three tokens of unequal size, general positions, a student of rank two."""
    return dp.Model(
        teacher=_three_token_teacher,
        student=dp.softmax_attention,
        length=3,
        teacher_rank=1,
        student_rank=2,
        sigma=[0.5, 0.7, 0.4],
        positions=[[1.0, -0.3, 0.2], [-0.3, 0.8, 0.1], [0.2, 0.1, 0.6]],
        ridge=0.02,
    )


def _three_token_teacher(h: jax.Array) -> jax.Array:
    return 0.7 * dp.softmax_attention(h) + 0.3 * jnp.eye(3)
