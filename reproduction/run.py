"""Run the reproduction: compute, draw and compare each item; a failed item stops no other."""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, get_args

import xarray as xr

import dotphase as dp
from dotphase.results import ProgressEvent
from reproduction.item import Scale
from reproduction.items import ITEMS, in_order
from reproduction.store import Parts
from reproduction.verdict import Row
from reproduction.write import write_report

#: Endings under which each figure is saved, for light and for dark pages.
FORMATS = ("png", "svg")


@dataclass(frozen=True)
class ItemResult:
    """Result of one item.

    Attributes
    ----------
    name, title : of the item
    rows : comparisons
    remarks : observations in sentences
    figures : paths under the folder of the report, in every format and shade
    tables : paths of long tables, under the same folder
    failure : reason of a failure, or None
    seconds : time of this run; finished parts are not computed again
    """

    name: str
    title: str
    rows: tuple[Row, ...]
    remarks: tuple[str, ...]
    figures: tuple[str, ...]
    failure: str | None
    seconds: float
    tables: tuple[str, ...] = ()


@dataclass(frozen=True)
class Report:
    """Results of all items.

    Attributes
    ----------
    scale : "quick" or "full"
    folder : folder of the report
    outcomes : one for each item
    """

    scale: Scale
    folder: Path
    outcomes: tuple[ItemResult, ...]

    @property
    def failed(self) -> tuple[str, ...]:
        """Names of the items that failed."""
        return tuple(outcome.name for outcome in self.outcomes if outcome.failure)

    def count(self, verdict: str) -> int:
        """Number of lines with this verdict."""
        return sum(row.verdict == verdict for out in self.outcomes for row in out.rows)


def reproduce(
    names: Iterable[str] = (),
    *,
    scale: Scale = "quick",
    out: str | Path,
    where: Mapping[str, Any] | None = None,
    progress: Callable[[ProgressEvent], None] | None = None,
) -> Report:
    """Reproduce figures and tables of the paper, and write the report.

    Parameters
    ----------
    names : names of items
        By default all of the paper; see `reproduction.items`.
    scale : {"quick", "full"}
        Minutes on two cores, or the sizes of the paper (a GPU helps).
    out : path
        Folder of the report. Stored parts with the same settings are used again, and other items
        of an earlier report of the same scale stay in it.
    where : mapping, optional
        Processes that compute the points of studies: the arguments ``engine``, ``workers`` and
        ``scheduler`` of `dotphase.run_study`. By default this process.
    progress : callable, optional
        Receives a `ProgressEvent` before a part of an item is computed, and one with the
        `ItemResult` when an item is done.

    Returns
    -------
    Report
        Also written to ``report.md``, ``report.html`` and ``report.json``, after every item.
    """
    chosen = in_order(names)
    if scale not in ("quick", "full"):
        raise dp.InvalidInput("scale", scale, "must be quick or full")
    if where and where.get("scheduler") is not None and where["engine"] != "dask":
        raise dp.InvalidInput("scheduler", where["scheduler"], "must be used with a Dask cluster")
    folder = _make_folder(out)
    outcomes: list[ItemResult] = []

    def report_part(name: str, part: str, result: ItemResult | None = None) -> None:
        if progress is not None:
            progress(ProgressEvent(f"{name}: {part}", len(outcomes), len(chosen), result))

    earlier = [result for result in _read_report(folder, scale) if result.name not in chosen]
    for name in chosen:
        parts = Parts(folder / "data" / name, partial(report_part, name), where)
        outcome = _reproduce_item(name, scale, folder, parts)
        outcomes.append(outcome)
        order = list(ITEMS).index
        results = sorted([*earlier, *outcomes], key=lambda item: order(item.name))
        write_report(Report(scale, folder, tuple(results)))
        status = f"FAILED, {outcome.failure}" if outcome.failure else "done"
        report_part(name, f"{status} ({outcome.seconds:.0f} s)", outcome)
    return Report(scale, folder, tuple(outcomes))


def rewrite_report(out: str | Path) -> Report:
    """Write the report of a folder again from its ``report.json``, without any computation."""
    folder = Path(out)
    for scale in get_args(Scale):
        if results := _read_report(folder, scale):
            report = Report(scale, folder, tuple(results))
            write_report(report)
            return report
    raise dp.InvalidInput("out", str(out), "must be a folder with the report of a run")


def _make_folder(out: str | Path) -> Path:
    """Make the folder of the report; `InvalidInput` if that is impossible."""
    folder = Path(out)
    try:
        (folder / "figures").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        rule = f"must be a folder that can be written to ({error.strerror})"
        raise dp.InvalidInput("out", str(out), rule) from None
    return folder


def _read_report(folder: Path, scale: Scale) -> list[ItemResult]:
    """Items without failure in an earlier report of the same scale; none without such a report."""
    try:
        document = json.loads((folder / "report.json").read_text())
        if document["scale"] != scale:
            return []
        items = [
            {**item, "rows": tuple(map(Row.from_dict, item["rows"]))} for item in document["items"]
        ]
        return [
            ItemResult(**item)
            for item in items
            if item["failure"] is None and item["name"] in ITEMS
        ]
    except (OSError, ValueError, KeyError, TypeError):
        return []  # no report, or a damaged one: it is replaced


def _reproduce_item(name: str, scale: Scale, folder: Path, parts: Parts) -> ItemResult:
    start = time.perf_counter()
    title = name
    log = parts.folder / "failure.txt"
    try:
        item = ITEMS[name]
        title = item.title
        datasets = item.compute(parts, item.sizes[scale])
        figures = _draw(item.draw, datasets, name, folder)
        rows, remarks = item.compare(datasets), item.remarks(datasets)
        tables = _write_tables(item.tables(datasets), folder)
    except Exception as error:
        # The other items continue; the file has the traceback.
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(traceback.format_exc())
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        return ItemResult(name, title, (), (), (), reason, time.perf_counter() - start)
    log.unlink(missing_ok=True)
    seconds = time.perf_counter() - start
    return ItemResult(name, title, tuple(rows), tuple(remarks), figures, None, seconds, tables)


def _write_tables(tables: Mapping[str, xr.Dataset], folder: Path) -> tuple[str, ...]:
    """Write long tables as compressed text, the same bytes for the same numbers."""
    paths = []
    for name, table in tables.items():
        path = Path("tables") / f"{name}.csv.gz"
        (folder / path.parent).mkdir(exist_ok=True)
        packing: Any = {"method": "gzip", "mtime": 0}
        frame = table.to_dataframe().reset_index(drop=True)
        frame.to_csv(folder / path, index=False, float_format="%.6g", compression=packing)
        paths.append(path.as_posix())
    return tuple(paths)


def _draw(draw: Callable[[Any], Any], datasets: Any, name: str, folder: Path) -> tuple[str, ...]:
    from dotphase.plot.style import house_style, save, theme

    paths = []
    for shade, suffix in (("light", ""), ("dark", "-dark")):
        with theme(shade), house_style():
            drawn = draw(datasets)
            for part, figure in drawn.items() if isinstance(drawn, dict) else [("", drawn)]:
                stem = f"{name}-{part}" if part else name
                for ending in FORMATS:
                    path = Path("figures") / f"{stem}{suffix}.{ending}"
                    save(figure, folder / path, small=True)
                    paths.append(path.as_posix())
    return tuple(paths)
