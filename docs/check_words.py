"""Check that the pages stay short: at most 25,000 words outside the API and the research notes.

    python docs/check_words.py

Prints the words of each kind of page. Code, displayed equations and comments are not counted;
tables, captions and headings are. The report of the reproduction is written by a command and has
a line of its own. The exit code is 1 above the limit.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 25_000
#: Kinds of pages that count, by their files.
COUNTED = {
    "front pages": ("README.md", "docs/*.md"),
    "tutorials": ("docs/tutorials/*.md",),
    "how-to guides": ("docs/how-to/*.md",),
    "explanation": ("docs/explanation/*.md",),
    "reference": ("docs/reference/*.md",),
    "project": ("CONTRIBUTING.md", "CHANGELOG.md", "docs/project/*.md"),
    "reproduction": ("docs/reproduction/index.md",),
}
#: Pages outside the limit.
OTHERS = {
    "research notes": ("docs/research-notes/*.md",),
    "API": ("docs/reference/api/*.rst",),
    "report, written by a command": ("docs/reproduction/report.md",),
}
NOT_WORDS = re.compile(
    r"^(```+|~~~+|:::+).*?^\1 *$|^ {4}.*?$|\$\$.*?\$\$|<!--.*?-->|\]\([^)]*\)",
    re.MULTILINE | re.DOTALL,
)


def count(text: str) -> int:
    """Words of a page: groups of characters with a letter or a digit."""
    return len(re.findall(r"\S*\w\S*", NOT_WORDS.sub(" ", text)))


def count_kind(patterns: tuple[str, ...], root: Path = ROOT) -> int:
    """Words of all files of some patterns."""
    files = {path for pattern in patterns for path in root.glob(pattern)}
    return sum(count(path.read_text(encoding="utf-8")) for path in files)


def main() -> int:
    counts = {kind: count_kind(patterns) for kind, patterns in COUNTED.items()}
    total = sum(counts.values())
    for kind, words in counts.items():
        print(f"{words:7,} {kind}")
    print(f"{total:7,} of at most {LIMIT:,} words")
    print("  not counted:")
    for kind, patterns in OTHERS.items():
        print(f"{count_kind(patterns):7,} {kind}")
    return int(total > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
