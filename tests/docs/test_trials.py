"""The page of the trials shows the figures of their last runs."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path


def program(name: str):
    spec = spec_from_file_location(name, Path(__file__).parents[2] / "trials" / f"{name}.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


page, common = program("page"), program("common")


def test_the_page_shows_the_figures():
    text = page.PAGE.read_text(encoding="utf-8")
    if page.FIGURES.exists():
        assert page.written(text) == text, "run python trials/page.py"


def test_the_last_runs_of_two_seeds_are_kept_and_shown(tmp_path, monkeypatch):
    monkeypatch.setattr(common, "RECORD", tmp_path / "trials.json")
    monkeypatch.setattr(page, "FIGURES", tmp_path / "trials.json")
    for seed, failed in ((1, 7), (2, 3), (3, 1), (2, 0)):
        run = {"seed": seed, "tried": 40, "failed": failed, "seconds": 90, "slowest": "2 s"}
        common.record("kills", "Killed.", run)
    common.record("damage", "Damaged.", {"seed": 1, "tried": 500, "failed": 0, "seconds": 30})
    text = page.PAGE.read_text(encoding="utf-8")
    written = page.written(text)
    rows = [row for row in written.splitlines() if row.startswith("| **")]
    assert rows == [
        "| **damage**: Damaged | 500 | 0 | 1 | 0.5 |",
        "| **kills**: Killed | 40 | 1 | 3 | 1.5 |",
        "| **kills**: Killed | 40 | 0 | 2 | 1.5 |",
    ]
    assert page.written(written) == written
