"""The report: Markdown and HTML for people, JSON for programs.

The first screen has the figures of the paper with ours, and the numbers that a reader looks for. A
section for each figure follows, then an appendix for the auditor.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dotphase
from dotphase.results import format_value, to_json_types
from reproduction.paper_figures import PAPER_FIGURES, Line, PaperFigure
from reproduction.verdict import AGREES, DIFFERS, ERRORS, OFF, OUTSIDE, UNDECIDED, Row

if TYPE_CHECKING:
    from reproduction.run import ItemResult, Report

MARKS = {
    AGREES: "✓ agrees",
    OFF: "! published is off",
    DIFFERS: "✗ differs",
    OUTSIDE: "~ outside the theory",
    UNDECIDED: "· no verdict",
}
#: Columns of the power of an item: detection limits of its finest, middle and coarsest line, and
#: the number of lines expected to differ by chance.
POWER = ("catches, finest", "middle", "coarsest", "would differ by chance")
#: Share of a normal law beyond three standard errors.
BY_CHANCE = 0.0027
#: Columns of the tables of comparisons. The last one numbers the reasons under the table.
COLUMNS = ("quantity", "at", "compared with", "value", "ours", "difference", "verdict", "why")
SCALES = {
    "quick": "The quick version: small dimensions and few data sets. Expect wide error bars and "
    "many lines without a verdict. `python -m reproduction --full` has the sizes of the paper.",
    "full": "The full version, at the sizes of the paper.",
}
VERDICTS = """\
- **✓ agrees**: the difference is within the allowed one, and the comparison would have caught twice
  the difference that matters. A difference of more than three standard errors (σ) can agree where
  a share of the number is allowed besides the errors; its σ are shown.
- **! published is off**: both numbers solve the same equations, assumed to be those of replica
  symmetry at the printed parameters. Ours has an error bar, and the difference is larger.
- **✗ differs**: the difference is larger than the allowed one.
- **~ outside the theory**: the theory fails its own checks there. The line shows the difference.
- **· no verdict**: the comparison is too coarse to fail."""


def write_report(report: Report) -> None:
    """Write ``report.md``, ``report.html`` and ``report.json`` into the folder of the report."""
    from reproduction.page import html

    text = markdown(report)
    _replace(report.folder / "report.json", json.dumps(_document(report), indent=1) + "\n")
    _replace(report.folder / "report.md", text)
    _replace(report.folder / "report.html", html(text, report.folder))


def _replace(path: Path, text: str) -> None:
    """Replace a file atomically: a killed process leaves the old file or the new one."""
    temporary = path.with_name(f".{path.name}-new")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def _document(report: Report) -> dict[str, Any]:
    document = {
        "software": f"dotphase {dotphase.__version__}",
        "paper": "arXiv:2402.03902",
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "scale": report.scale,
        "verdicts": {verdict: report.count(verdict) for verdict in MARKS},
        "failed": list(report.failed),
        "items": [
            {**vars(outcome), "rows": [row.to_dict() for row in outcome.rows]}
            for outcome in report.outcomes
        ],
    }
    return dict(to_json_types(document))


def markdown(report: Report) -> str:
    """The report as Markdown."""
    items = {outcome.name: outcome for outcome in report.outcomes}
    figures = [each for each in PAPER_FIGURES if set(each.items) & set(items)]
    others = [name for name in items if not any(name in each.items for each in figures)]
    lines = ["# Reproduction report for arXiv:2402.03902", "", SCALES[report.scale], ""]
    if report.failed:
        lines += [f"**Failed: {', '.join(report.failed)}.**", ""]
    if figures:
        lines += _first_screen(figures, items)
    for figure in figures:
        results = [items[name] for name in figure.items if name in items]
        lines += ["", f"## {figure.title}", "", f"The paper: {figure.finding}"]
        for result in results:
            lines += ["", *_item(result)]
    lines += ["", "## Appendix for the auditor", "", *_appendix(report)]
    for name in others:
        lines += ["", f"### {items[name].title}", "", *_item(items[name])]
    return "\n".join(lines) + "\n"


def _first_screen(figures: Sequence[PaperFigure], items: dict[str, ItemResult]) -> list[str]:
    """The figures with their findings, then the table of the most important numbers."""
    lines = ["| ours | what the paper found, and what comes out here |", "|---|---|"]
    for figure in figures:
        rows = [row for name in figure.items if name in items for row in items[name].rows]
        paths = [path for name in figure.items if name in items for path in items[name].figures]
        link = f"#{anchor(figure.title)}"
        image = f"figures/{figure.image}.png"
        picture = f"[![{figure.title}]({image})]({link})" if image in paths else ""
        first = _find(figure.lines[0], items)
        number = f"{figure.lines[0].compared.format(**first.at)}: {_pair(first)}. " if first else ""
        outcome = number + _counts(rows) or "No number is compared at this size."
        text = (
            f"[**{figure.title}**]({link}). {figure.finding} {'*Here:* ' if first else ''}{outcome}"
        )
        lines.append(f"| {picture} | {text} |")
    lines += ["", "| figure | what is compared | ours | reference | verdict |", "|" + "---|" * 5]
    for figure in figures:
        for line in figure.lines:
            row = _find(line, items)
            if row is not None:
                cells = (
                    f"[{figure.title}](#{anchor(figure.title)})", line.compared.format(**row.at),
                    format_value(row.ours, row.stderr), f"{_reference(row)} ({_origin(row)})",
                    _verdict(row),
                )  # fmt: skip
                lines.append(_cells(cells))
    return [*lines, "", VERDICTS]


def anchor(title: str) -> str:
    """Anchor of a heading, the same on all renderers for titles of words."""
    return title.lower().replace(" ", "-")


def _counts(rows: Sequence[Row]) -> str:
    """Number of comparisons, by verdict."""
    nouns = {AGREES: "agreement", OFF: "published number off", DIFFERS: "difference",
             OUTSIDE: "outside the theory", UNDECIDED: "no verdict"}  # fmt: skip
    counts = {verdict: sum(row.verdict == verdict for row in rows) for verdict in nouns}
    parts = [f"{nouns[verdict]} {count}" for verdict, count in counts.items() if count]
    return f"({len(rows)} comparisons: {', '.join(parts)}.)" if rows else ""


def _pair(row: Row) -> str:
    """Our number and the one it is compared with."""
    return f"{format_value(row.ours, row.stderr)} ({_origin(row)}: {_reference(row)})"


def _find(line: Line, items: dict[str, ItemResult]) -> Row | None:
    """The row of a line of the first table; None if this run does not have it."""
    rows = items[line.item].rows if line.item in items else ()
    matching = (
        row for row in rows if row.quantity == line.quantity and line.at.items() <= row.at.items()
    )
    return next(matching, None)


def _item(outcome: ItemResult) -> list[str]:
    """Figures, remarks and comparisons of an item."""
    if outcome.failure:
        return [f"This item failed: {outcome.failure}"]
    lines = []
    for path in outcome.figures:
        if path.endswith(".png") and not path.endswith("-dark.png"):
            lines += [f"![{outcome.title}]({path})", ""]
    if outcome.remarks:
        lines += [*(f"- {remark}" for remark in outcome.remarks), ""]
    for path in outcome.tables:
        lines += [f"All of them: [{path}]({path}).", ""]
    lines += _table(outcome.rows)
    while lines and lines[-1] == "":
        lines.pop()
    return lines


def _table(rows: Sequence[Row]) -> list[str]:
    """Comparisons, with their reasons as numbered notes."""
    if not rows:
        return []
    reasons = {row.why: number for number, row in enumerate(rows)}
    numbers = {why: number for number, why in enumerate(reasons, 1)}
    lines = ["| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS)]
    for row in rows:
        at = ", ".join(f"{name} = {_short(value)}" for name, value in row.at.items())
        cells = (
            row.quantity, at, _origin(row), _reference(row),
            format_value(row.ours, row.stderr), _difference(row), _verdict(row),
            str(numbers[row.why]),
        )  # fmt: skip
        lines.append(_cells(cells))
    return [*lines, "", *(f"{number}. {why}" for why, number in numbers.items())]


def _appendix(report: Report) -> Iterator[str]:
    """Detection limits of the verdicts, and differences expected by chance."""
    yield f"`python -m reproduction --{report.scale}`, dotphase {dotphase.__version__}. Verdicts: "
    yield ", ".join(f"{report.count(verdict)} {verdict}" for verdict in MARKS) + "."
    yield ""
    yield "*Published* rows come from the paper (every source is in `published.toml`). *Theory* or"
    yield "*training* rows compare two engines of this package. The number after ± is one standard"
    yield "error. For the histogram task the published error is the standard deviation over runs,"
    yield "or half of a published range. The detection limit (*catches*) is the smallest true"
    yield "difference that a line would catch 39 times out of 40; `report.json` has it for each."
    yield ""
    yield _power(report)
    yield ""
    yield _cells(("item", *MARKS, *POWER))
    yield "|---|" + "---|" * (len(MARKS) + len(POWER))
    for outcome in report.outcomes:
        counts = [sum(row.verdict == verdict for row in outcome.rows) for verdict in MARKS]
        cells = ["failed"] * len(MARKS) if outcome.failure else [str(count) for count in counts]
        yield _cells((outcome.title, *cells, *_power_cells(outcome.rows)))


def _caught(rows: Iterable[Row]) -> list[float]:
    """Detection limits of the lines with a verdict, in percent, sorted.

    Comparisons with zero are left out.
    """
    decided = [row for row in rows if row.verdict in (AGREES, DIFFERS) and row.reference]
    return sorted(100 * row.catches / abs(row.reference) for row in decided)


def _power_cells(rows: Sequence[Row]) -> list[str]:
    """Detection limits of an item's lines, and the number expected to differ by chance."""
    shares = _caught(rows)
    if not shares:
        return ["-"] * len(POWER)
    chosen = (shares[0], shares[len(shares) // 2], shares[-1])
    return [*(f"{share:.2g}%" for share in chosen), f"{BY_CHANCE * len(shares):.2f}"]


def _power(report: Report) -> str:
    """Detection limits of all comparisons, and the number expected to differ by chance."""
    rows = [row for outcome in report.outcomes for row in outcome.rows]
    shares = _caught(rows)
    if not shares:
        return "Nothing was compared."
    return (
        f"Of {len(rows)} lines {len(shares)} compare numbers other than zero with a verdict; "
        f"they catch differences from {shares[0]:.2g}% to {shares[-1]:.2g}%, "
        f"{shares[len(shares) // 2]:.2g}% in the middle (by item below). At three standard errors "
        f"{BY_CHANCE * len(shares):.1f} of them would differ by chance; {report.count(DIFFERS)} "
        "lines differ."
    )


def _cells(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _reference(row: Row) -> str:
    if row.reference_error is None:
        return f"{row.reference:g}"
    return format_value(row.reference, row.reference_error)


def _origin(row: Row) -> str:
    if row.quantity.startswith(("width of", "mean difference of")):
        return "expected"
    return "published" if row.origin.startswith("arXiv") else row.origin.removesuffix(", this run")


def _sigmas(row: Row) -> float:
    """The difference in standard errors; zero without an error."""
    return abs(row.difference) / row.noise if row.noise > 0 else 0.0


def _verdict(row: Row) -> str:
    """The verdict; an agreement beyond three standard errors shows how many."""
    tolerated = row.verdict == AGREES and _sigmas(row) > ERRORS
    return MARKS[row.verdict] + (f" ({_sigmas(row):.1f} σ, tolerance)" if tolerated else "")


def _difference(row: Row) -> str:
    if not math.isfinite(row.difference):
        return "-"
    relative = f"{100 * row.difference / row.reference:+.1f}%" if row.reference else ""
    sigmas = f"{_sigmas(row):.1f} σ" if _sigmas(row) else ""
    notes = ", ".join(filter(None, (relative, sigmas)))
    return f"{row.difference:+.2g}" + (f" ({notes})" if notes else "")


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
