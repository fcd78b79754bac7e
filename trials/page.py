"""The table of `docs/research-notes/trials.md`, from the figures of the last runs."""

from __future__ import annotations

import json
import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"
FIGURES, PAGE = DOCS / "data" / "trials.json", DOCS / "research-notes" / "trials.md"
MARK = "<!-- figures -->"


def table() -> str:
    """The last two runs of every trial."""
    found = json.loads(FIGURES.read_text(encoding="utf-8"))
    rows = ["| trial | tried | failed | seed | minutes |", "|---|---|---|---|---|"]
    for name, trial in sorted(found.items()):
        for run in trial["runs"]:
            told = (run["tried"], run["failed"], run["seed"], f"{run['seconds'] / 60:.1f}")
            about = trial["about"].rstrip(".")
            rows.append(f"| **{name}**: {about} | {' | '.join(map(str, told))} |")
    return "\n".join(rows)


def written(page: str) -> str:
    """The page with the table of now."""
    between = f"{MARK}\n\n{table()}\n\n{MARK}"
    return re.sub(f"{MARK}.*{MARK}", lambda _: between, page, flags=re.DOTALL)


def write() -> None:
    """Write the table into the page."""
    if FIGURES.exists():
        PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    write()
