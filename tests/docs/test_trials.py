"""The page of the trials shows the figures of their last runs."""

from __future__ import annotations

import json
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

_spec = spec_from_file_location("page", Path(__file__).parents[2] / "trials" / "page.py")
page = module_from_spec(_spec)
_spec.loader.exec_module(page)


def test_the_page_shows_the_figures(tmp_path, monkeypatch):
    text = page.PAGE.read_text(encoding="utf-8")
    if page.FIGURES.exists():
        assert page.written(text) == text, "run python trials/page.py"
    figures = tmp_path / "trials.json"
    run = {"seed": 3, "tried": 40, "failed": 1, "seconds": 90}
    figures.write_text(json.dumps({"kills": {"about": "Killed.", "runs": [run]}}))
    monkeypatch.setattr(page, "FIGURES", figures)
    assert "| **kills**: Killed | 40 | 1 | 3 | 1.5 |" in page.written(text)
    assert page.written(page.written(text)) == page.written(text)
