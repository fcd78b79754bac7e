"""The public names: few at the top, loaded when they are used, the old ones known."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

import dotphase as dp
from dotphase import _lazy


def test_there_are_few_names_at_the_top():
    assert len([name for name in dp.__all__ if not isinstance(getattr(dp, name), ModuleType)]) < 40


def test_every_name_is_there():
    assert all(getattr(dp, name) is not None for name in dp.__all__)
    assert set(dir(dp)) == set(dp.__all__)


@pytest.mark.parametrize(("old", "new"), dp._RENAMED.items())
def test_a_renamed_name_says_what_it_is_called_now(old, new):
    with pytest.raises(AttributeError, match=rf"{old} is called {new} now"):
        getattr(dp, old)
    value = dp
    for part in new.split(".")[1:]:
        value = getattr(value, part)


def test_other_names_are_unknown():
    with pytest.raises(AttributeError, match="no attribute 'slove'"):
        _ = dp.slove


def test_nothing_heavy_is_imported_with_the_package():
    code = (
        "import sys, dotphase; heavy = {'jax', 'numpy', 'scipy', 'xarray', 'matplotlib'}; "
        "sys.exit(len(heavy & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_results_are_labelled_only_when_asked():
    """xarray takes as long to import as all else that training and message passing need."""
    names = "dp.solve, dp.train, dp.amp, dp.dynamics"
    code = f"import sys, dotphase as dp; {names}; sys.exit('xarray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_all_that_is_needed_is_pinned():
    """What is set up is what `constraints.txt` says, and nothing else."""
    root = Path(__file__).resolve().parents[1]
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    needed = {re.match(r"[\w-]+", one)[0].lower() for group in groups for one in group}
    pinned = re.findall(r"^[\w.-]+(?===)", (root / "constraints.txt").read_text(), re.MULTILINE)
    assert needed and needed <= set(pinned)


def test_studies_are_looked_after_without_jax():
    code = "import sys, dotphase.study.run, dotphase.study.worker; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_stub_may_rename_and_name_modules(tmp_path):
    (tmp_path / "some.pyi").write_text(
        "from pathlib import Path as Place\nfrom xml import sax as sax\nfrom json import dumps\n"
    )
    homes = _lazy.read_stub(str(tmp_path / "some.py"))
    assert _lazy.load("some", homes, "Place").__name__ == "Path"
    assert _lazy.load("some", homes, "sax").__name__ == "xml.sax"
    assert _lazy.load("some", homes, "dumps")([1]) == "[1]"
