"""Code of docstrings about broken symmetry runs; it computes long, so it is compiled well."""

import pytest

from examples import NAMES, breaks_symmetry, examples, run


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", [name for name in NAMES if breaks_symmetry(name)])
def test_the_example_of_a_public_name_runs(name):
    assert examples(name), f"{name} has no example"
    assert run(name) == ""
