"""Public names: few, imported at first use, declared in the stub."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

import dotphase as dp
from dotphase import _lazy


def run_python(code):
    """Exit code of a program."""
    return subprocess.run([sys.executable, "-c", code], check=False).returncode


def test_there_are_few_names_at_the_top():
    assert len([name for name in dp.__all__ if not isinstance(getattr(dp, name), ModuleType)]) <= 41


def test_every_declared_name_can_be_imported():
    assert all(getattr(dp, name) is not None for name in dp.__all__)
    assert dir(dp) == dp.__all__ and re.match(r"\d+\.\d+", dp.__version__)


@pytest.mark.parametrize("package", [dp, dp.histogram])
def test_an_unknown_name_is_an_attribute_error(package):
    with pytest.raises(AttributeError, match="no attribute 'slove'"):
        _ = package.slove


def test_importing_the_package_imports_nothing_heavy():
    heavy = {"jax", "numpy", "scipy", "xarray", "matplotlib"}
    assert run_python(f"import sys, dotphase; sys.exit(len({heavy} & set(sys.modules)))") == 0


def test_xarray_and_statistics_are_imported_only_where_needed():
    """Importing either takes as long as all other imports of training and message passing."""
    names, late = "dp.solve, dp.train, dp.amp, dp.dynamics", {"xarray", "scipy.stats"}
    program = f"import sys, dotphase as dp; {names}; sys.exit(len({late} & set(sys.modules)))"
    assert run_python(program) == 0


def test_studies_are_managed_without_jax():
    modules = "dotphase.study.run, dotphase.runtime.processes"
    assert run_python(f"import sys, {modules}; sys.exit('jax' in sys.modules)") == 0


def test_all_dependencies_are_pinned():
    root = Path(__file__).resolve().parents[1]
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    required = {re.match(r"[\w-]+", line)[0].lower() for group in groups for line in group}
    pinned = re.findall(r"^[\w.-]+(?===)", (root / "constraints.txt").read_text(), re.MULTILINE)
    assert required and required <= set(pinned)


def test_a_stub_may_rename_and_import_modules(tmp_path):
    (tmp_path / "package.pyi").write_text(
        "from pathlib import Path as Folder\nfrom xml import sax as sax\nfrom json import dumps\n"
    )
    load, listing, names = _lazy.attach_stub("package", str(tmp_path / "package.py"))
    assert listing() == names == ["Folder", "dumps", "sax"]
    assert load("Folder").__name__ == "Path"
    assert load("sax").__name__ == "xml.sax"
    assert load("dumps")([1]) == "[1]"
