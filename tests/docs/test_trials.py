"""The page of the trials shows the figures of their last runs."""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "trials"))
import page  # noqa: E402


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
