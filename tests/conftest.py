"""Fixtures shared by the tests."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from xdist.scheduler import LoadFileScheduling

import dotphase as dp
from dotphase.runtime.compilation_cache import enable_for_process
from extensions.compiler import QUICK, compile_averages_well, compile_quickly

ROOT = Path(__file__).resolve().parents[1]
compile_quickly()
enable_for_process()
# Small functions compile as fast as they are written to disk and read.
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)

# Child processes inherit an ignored SIGINT, such as that of a background job; tests interrupt them.
signal.signal(signal.SIGINT, signal.default_int_handler)

#: Folders and files in which averages of every model take longer to run than to compile.
LONG_AVERAGES = {
    "theory", "explorer", "study", "test_one_rsb.py", "test_curve.py", "test_diagram.py",
}  # fmt: skip

#: Folders whose files take longest. They start first, so that no process ends with a long file.
LONG_FOLDERS = ("docs", "reproduction", "explorer", "theory", "dmft", "training", "study", "cli")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort the folders with long files to the front."""
    rank = {folder: number for number, folder in enumerate(LONG_FOLDERS)}
    items.sort(key=lambda item: rank.get(item.path.parent.name, len(rank)))


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Import all modules in the first process; the others then read its byte code."""
    worker = getattr(session.config, "workerinput", {"workerid": None})["workerid"]
    if worker is None:
        return (yield)
    done = Path(session.config.option.basetemp).parent / "collected"
    limit = time.monotonic() + 60
    while worker != "gw0" and not done.exists() and time.monotonic() < limit:
        time.sleep(0.1)
    result = yield
    done.touch()
    return result


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling:
    return FileOrPackageScheduling(config, log)


class FileOrPackageScheduling(LoadFileScheduling):
    """Run each file in one process, and all files of a package, which share fixtures."""

    def _split_scope(self, nodeid: str) -> str:
        file = Path(nodeid.split("::")[0])
        return str(file.parent if (ROOT / file.parent / "__init__.py").exists() else file)


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    """Tests call internal functions, which compute in float64."""
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="module", autouse=True)
def quick_to_compile(request: pytest.FixtureRequest) -> Iterator[None]:
    """Compile quickly, see `extensions.compiler`."""
    others = bool(LONG_AVERAGES & {request.path.parent.name, request.path.name})
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
    """Folder with tables of reference numbers; its README names their source."""
    return ROOT / "tests" / "reference"


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
