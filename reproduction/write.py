"""The report as Markdown for people and JSON for programs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dotphase
from dotphase.results import format_value, to_json_types
from reproduction.verdict import AGREES, DIFFERS, OFF, OUTSIDE, UNDECIDED, Row

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
#: Columns of the tables of comparisons.
COLUMNS = (
    "quantity", "at", "compared with", "value", "ours", "difference", "catches", "verdict", "why",
)  # fmt: skip


def write_report(report: Report) -> None:
    """Write ``report.md`` and ``report.json`` into the folder of the report."""
    _replace(report.folder / "report.json", json.dumps(_document(report), indent=1) + "\n")
    _replace(report.folder / "report.md", markdown(report))


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
    lines = [
        "# Reproduction report for arXiv:2402.03902",
        "",
        f"`python -m reproduction --{report.scale}`, dotphase {dotphase.__version__}. "
        + _summary(report),
        "",
        "Each line compares one number. *Published* rows come from the paper (every source is in",
        "`published.toml` of the package); *theory* or *training* rows compare two engines of this",
        "package with each other. The number after ± is one standard error. For the histogram task",
        "the published error is the standard deviation over runs, or half of a published range.",
        "Some numbers of the paper solve the same equations as ours. If they differ by more than",
        "our error bar, and the last column gives evidence that ours has converged, the verdict",
        "is that the published number is off.",
        "",
        "*Catches* is the detection limit: the smallest true difference that the line would catch,",
        '39 times out of 40. The verdict "agrees" requires that the line would catch twice the',
        "difference that matters; a coarser line has no verdict. Where the theory fails its own",
        "checks, the line is outside the theory: it shows the difference without a verdict on",
        "agreement.",
        "",
        _power(report),
        "",
        "| | " + " | ".join((*MARKS, *POWER)) + " |",
        "|---|" + "---|" * (len(MARKS) + len(POWER)),
    ]
    for outcome in report.outcomes:
        counts = [sum(row.verdict == verdict for row in outcome.rows) for verdict in MARKS]
        cells = ["failed"] * len(MARKS) if outcome.failure else [str(count) for count in counts]
        cells += _power_cells(outcome.rows)
        link = f"[{outcome.title}](#{outcome.name})"
        lines.append(f"| {link} | " + " | ".join(cells) + " |")
    for outcome in report.outcomes:
        lines += ["", *_section(outcome)]
    return "\n".join(lines) + "\n"


def _summary(report: Report) -> str:
    counts = ", ".join(f"{report.count(verdict)} {verdict}" for verdict in MARKS)
    failed = f" Failed: {', '.join(report.failed)}." if report.failed else ""
    return f"Verdicts: {counts}.{failed}"


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


def _section(outcome: ItemResult) -> list[str]:
    # The heading is the name, so that the links of the summary work on every renderer.
    lines = [f"## {outcome.name}", "", f"**{outcome.title}.**", ""]
    if outcome.failure:
        return [*lines, f"This item failed: {outcome.failure}"]
    for path in outcome.figures:
        if path.endswith(".png") and not path.endswith("-dark.png"):
            lines += [f"![{outcome.title}]({path})", ""]
    if outcome.remarks:
        lines += [*(f"- {remark}" for remark in outcome.remarks), ""]
    for path in outcome.tables:
        lines += [f"All of them: [{path}]({path}).", ""]
    if outcome.rows:
        lines += [
            "| " + " | ".join(COLUMNS) + " |",
            "|" + "---|" * len(COLUMNS),
            *(_line(row) for row in outcome.rows),
        ]
    while lines[-1] == "":
        lines.pop()
    return lines


def _line(row: Row) -> str:
    at = ", ".join(f"{name} = {_short(value)}" for name, value in row.at.items())
    error = row.reference_error
    value = f"{row.reference:g}" if error is None else format_value(row.reference, error)
    cells = [
        row.quantity, at, _origin(row.origin), value, format_value(row.ours, row.stderr),
        _difference(row), _catches(row), MARKS[row.verdict], row.why,
    ]  # fmt: skip
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _origin(origin: str) -> str:
    return "published" if origin.startswith("arXiv") else origin.removesuffix(", this run")


def _difference(row: Row) -> str:
    if not math.isfinite(row.difference):
        return "-"
    relative = f" ({100 * row.difference / row.reference:+.1f}%)" if row.reference else ""
    return f"{row.difference:+.2g}{relative}"


def _catches(row: Row) -> str:
    if not math.isfinite(row.catches):
        return "-"
    return (
        f"{100 * row.catches / abs(row.reference):.2g}%" if row.reference else f"{row.catches:.2g}"
    )


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
