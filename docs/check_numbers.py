"""Check that the numbers in prose are those of committed data.

    python docs/check_numbers.py            # check README.md and docs/
    python docs/check_numbers.py --write    # correct the numbers in place

A number that was measured carries the name of its fact in a comment, which no reader sees:
``alpha_c = 1.2509 ± .0008<!--alpha_c-->``. The facts are in ``docs/page_facts.py``, computed from
the committed results. Every other number in prose must be a setting (``omega = .3``, a small
integer) or be listed with its reason in ``docs/page_numbers.toml``. The exit code is 1 if not.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from page_facts import FACTS

ROOT = Path(__file__).resolve().parents[1]
EXCEPTIONS = ROOT / "docs" / "page_numbers.toml"
#: Pages whose numbers are checked; the others are listed in the exceptions.
PAGES = ("README.md", "docs/**/*.md")
#: Integers up to this are counts and settings.
SMALL = 20

NUMBER = r"\d{1,3}(?:,\d{3})+|\d*\.\d+|\d+"
ANNOTATED = re.compile(rf"(-?(?:{NUMBER}))(?: ± ({NUMBER}))?( ?%)?<!--([\w.-]+)-->")
#: Code, mathematics, addresses, comments and names: not prose.
NOT_PROSE = re.compile(
    r"^(```+|~~~+|:::+).*?^\1 *$|^(?: {4}|\t).*?$|`[^`\n]*`|\$\$.*?\$\$|\$[^$\n]*\$|<!--.*?-->"
    r"|\]\([^)]*\)|<[^>\n]*>|https?://\S+|arXiv:\S+|\b\d{4}\.\d{5}\b",
    re.MULTILINE | re.DOTALL,
)
_NAMES = (
    "alpha|omega|sigma|ridge|lambda|theta|beta|rho|d|n|L|K|m|q|s|r|lr|delta|rtol|strength|scale|size"
    "|step|steps|seed|rank|dimension|iteration"
)
#: A parameter with one value or several.
SETTING = re.compile(
    rf"\b(?:{_NAMES})\s*(?:=|≈|<=|>=|<|>|of|at|from|up to|between)\s*-?(?:{NUMBER})"
    rf"(?:\s*(?:,|and|or|to)\s*(?:(?:{_NAMES})\s*=\s*)?-?(?:{NUMBER}))*",
)
#: Powers, years, versions, dates.
NAME = re.compile(
    r"\b(?:2|10)\^-?\d+|\b(?:19|20)\d\d\b|\b\d+\.\d+\.\d+|Python 3\.\d+|\b[A-Za-z_]+\d[\w.]*"
)


def format_like(printed: str, value: float) -> str:
    """Write `value` with the digits and in the form of `printed`."""
    decimals = len(printed.split(".")[1]) if "." in printed else 0
    text = f"{value:,.{decimals}f}" if "," in printed else f"{value:.{decimals}f}"
    return re.sub(r"^(-?)0\.", r"\1.", text) if re.match(r"-?\.", printed) else text


def corrected(match: re.Match[str]) -> str:
    """Return the annotated number as the data have it."""
    value, error, percent, name = match.groups()
    if name not in FACTS:
        raise KeyError(f"no fact {name!r} in docs/page_facts.py")
    fact = FACTS[name]
    scale = 100 if percent else 1
    text = format_like(value, scale * fact[0])
    if error is not None:
        text += f" ± {format_like(error, scale * fact[1])}"
    return f"{text}{percent or ''}<!--{name}-->"


def unexplained(text: str, exceptions: list[str]) -> Iterator[str]:
    """Yield numbers of a page that are neither facts, settings, names nor exceptions."""
    text = ANNOTATED.sub(" ", text)
    for known in exceptions:
        text = text.replace(known, " ")
    for pattern in (NOT_PROSE, SETTING, NAME):
        text = pattern.sub(" ", text)
    for line in text.splitlines():
        for number in re.findall(rf"(?<![\w.^-])(?:{NUMBER})(?!\w)", line):
            if not (number.isdigit() and int(number) <= SMALL):
                yield f"{number} in: {line.strip()[:110]}"


def problems(write: bool = False) -> Iterator[str]:
    """Yield every disagreement in one line."""
    listed = tomllib.loads(EXCEPTIONS.read_text(encoding="utf-8"))
    pages = sorted({path for pattern in PAGES for path in ROOT.glob(pattern)})
    for path in pages:
        name, text = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
        new = ANNOTATED.sub(corrected, text)
        if new != text and write:
            path.write_text(new, encoding="utf-8")
        elif new != text:
            pairs = zip(ANNOTATED.finditer(text), ANNOTATED.finditer(new), strict=True)
            yield from (f"{name}: {a[0]} is {b[0]} in the data" for a, b in pairs if a[0] != b[0])
        if not any(path.match(page) for page in listed["whole_pages"]):
            known = [text for group in listed["numbers"].get(name, {}).values() for text in group]
            yield from (f"{name}: {each}" for each in unexplained(new, known))
            yield from (f"{name}: exception not on the page: {k}" for k in known if k not in new)


if __name__ == "__main__":
    found = list(problems(write="--write" in sys.argv))
    print(*found, f"{len(FACTS)} facts, {len(found)} problems", sep="\n")
    sys.exit(bool(found))
