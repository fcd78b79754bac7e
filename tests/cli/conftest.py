"""Fixtures of the tests of all commands."""

import pytest

from dotphase.cli.main import _run


@pytest.fixture(autouse=True)
def no_shared_cache(monkeypatch):
    """In-process runs must not change the settings of the test process."""
    monkeypatch.setattr("dotphase.cli.options.prepare_jax", lambda: None)


@pytest.fixture
def refused(capsys, tmp_path, monkeypatch):
    """Check that a command is refused in one line with the given parts, and writes nothing."""

    def run(arguments, parts):
        files = set(tmp_path.iterdir())
        with monkeypatch.context() as patch:
            patch.chdir(tmp_path)
            assert _run(arguments) == 2
        out, err = capsys.readouterr()
        assert out == "" and err.count("\n") == 1
        assert [part for part in parts if part not in err] == []
        assert set(tmp_path.iterdir()) == files
        return True

    return run
