"""Running a study: what is left to do, on what, into the journal, and at the end a dataset."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from dotphase.config import validation
from dotphase.errors import Interrupted, InvalidInput
from dotphase.runtime import interrupt
from dotphase.storage.files import remove_leftovers, write_dataset
from dotphase.storage.journal import Journal, storage_errors
from dotphase.storage.provenance import provenance
from dotphase.study.cluster import connected, on_dask
from dotphase.study.journal import DATASET, RECENT, open_journal, rate_of, read_record
from dotphase.study.local import Step, in_this_process, on_processes
from dotphase.study.spec import Study, read_spec
from dotphase.study.tasks import TASKS

#: Where points can be computed: processes of this machine, a Dask cluster, the calling process.
PLACES = ("local", "dask", "here")
#: What stands in a dataset for a point that failed.
MISSING = {float: np.nan, int: -1, bool: False, str: ""}


@dataclass(frozen=True)
class Progress:
    """How far a study is.

    Attributes
    ----------
    total, done, failed : numbers of points
    rate : points finished per second of late; None if not known
    seconds_left : at this rate; None if not known
    damaged : rows that had changed on the disk since they were written; they are computed again
    """

    total: int
    done: int
    failed: int
    rate: float | None
    seconds_left: float | None
    damaged: int


def run_study(
    study: Study | str | Path,
    folder: str | Path,
    *,
    on: str = "local",
    scheduler: str | None = None,
    workers: int | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> xr.Dataset:
    """Compute every point of a study that is not done yet.

    Parameters
    ----------
    study : Study or path
        The study, or the TOML file that describes it.
    folder : path
        Where it is kept: a new or empty folder, or one that holds this same study, which
        then goes on where it stopped. Points that failed are tried again.
    on : {"local", "dask", "here"}
        Processes on this machine, a Dask cluster, or the calling process itself.
    scheduler : str, optional
        Address of an existing Dask cluster; without it one is started on 127.0.0.1.
    workers : int, optional
        Processes to start; one for every core if not given.
    progress : callable, optional
        Called with a `Progress` at the beginning and whenever points are recorded.

    Returns
    -------
    xarray.Dataset
        With a dimension for every swept parameter and for the seed; also written to
        ``study.nc`` in the folder. It is the same however the study was interrupted and
        on however many workers it ran. ``done`` is false and ``reason`` says why where a
        point failed.

    Raises
    ------
    Interrupted
        A `KeyboardInterrupt`, also on SIGTERM, that carries the dataset of what is done.

    Examples
    --------
    >>> study = dp.Study("regression", sweep={"alpha": [0.5, 2.0]})
    >>> found = dp.run_study(study, "kept", on="here")
    >>> found["V"].dims
    ('alpha', 'seed')
    """
    chosen = study if isinstance(study, Study) else read_spec(study)
    count = check_where(on, scheduler, workers)
    about = provenance(task=chosen.task)
    with _terminable(), ExitStack() as stack:
        # An address where nobody answers leaves no folder behind.
        client = stack.enter_context(connected(count, scheduler)) if scheduler is not None else None
        journal = stack.enter_context(open_journal(folder, chosen, about))
        try:
            remove_leftovers(Path(folder) / DATASET)
            todo = [place for place in range(chosen.size) if place not in journal.done]
            if on == "here" or not todo:
                steps = in_this_process(chosen, todo)
            elif on == "local":
                steps = on_processes(chosen, todo, count)
            else:
                client = client or stack.enter_context(connected(count, None))
                steps = on_dask(client, chosen, todo)
            _follow(steps, journal, chosen.size, progress)
            dataset = read_study(folder)
            with storage_errors(Path(folder)):
                write_dataset(dataset, Path(folder) / DATASET)
        except KeyboardInterrupt:
            interrupt.begin_handover()
            raise Interrupted(read_study(folder)) from None
    return dataset


def _follow(
    steps: Generator[Step, None, None],
    journal: Journal,
    total: int,
    progress: Callable[[Progress], None] | None,
) -> None:
    """Write down what comes back, before anything new is sent out."""
    report = progress or (lambda now: None)
    done, failed, begun = len(journal.done), 0, time.time()
    recent: deque[float] = deque(maxlen=RECENT + 1)
    report(Progress(total, done, failed, None, None, journal.damaged))
    with closing(steps):
        for step in steps:
            if step.finished or step.started:
                journal.record(step.finished, step.started)
            if not step.finished:
                continue
            now = time.time()
            bad = sum(outcome.values is None for outcome in step.finished)
            failed, done = failed + bad, done + len(step.finished) - bad
            recent.extendleft([now] * len(step.finished))
            rate = rate_of(begun, list(recent), now)
            left = (total - done - failed) / rate if rate else None
            report(Progress(total, done, failed, rate, left, journal.damaged))


def read_study(folder: str | Path) -> xr.Dataset:
    """The dataset of what is finished in a study's folder, also while it is running.

    Parameters
    ----------
    folder : path
        Where `run_study` works, or has worked.

    Examples
    --------
    >>> study = dp.Study("regression", sweep={"alpha": [0.5, 2.0]})
    >>> found = dp.run_study(study, "kept", on="here")
    >>> found = dp.read_study("kept")
    """
    study, record = read_record(folder)
    results = TASKS[study.task].results
    kinds: dict[type, Any] = {float: np.float64, int: np.int64, bool: np.bool_, str: object}
    columns = {
        name: np.full(study.size, MISSING[result.kind], kinds[result.kind])
        for name, result in results.items()
    }
    done = np.zeros(study.size, bool)
    reason = np.full(study.size, "", object)
    for outcome in record.outcomes:
        if outcome.values is None:
            reason[outcome.index] = outcome.reason
            continue
        done[outcome.index] = True
        for name in results:
            columns[name][outcome.index] = outcome.values[name]
    axes = tuple(study.dimensions)
    dataset = xr.Dataset(
        coords={name: _labels(values) for name, values in study.dimensions.items()},
        attrs=_attributes(study, record.about, record.software),
    )
    described = {name: result.description for name, result in results.items()}
    columns |= {"done": done, "reason": reason}
    described |= {"done": "whether the point was computed", "reason": "why it failed"}
    for name, values in columns.items():
        text = values.astype(str) if values.dtype == object else values
        dataset[name] = (axes, text.reshape(study.shape), {"description": described[name]})
    return dataset


def _attributes(study: Study, about: dict[str, Any], software: tuple[str, ...]) -> dict[str, Any]:
    plain = {
        name: value if isinstance(value, int | float | str) else json.dumps(value)
        for name, value in study.fixed.items()
        if value is not None
    }
    attributes = {**about, **plain, "specification": json.dumps(study.to_dict())}
    if software:
        attributes["resumed_with"] = ", ".join(software)
    return attributes


def _labels(values: tuple[Any, ...]) -> list[Any]:
    """Values as coordinates: numbers, or texts."""
    if all(isinstance(value, int | float | str) for value in values):
        return list(values)
    return [value if isinstance(value, str) else json.dumps(value) for value in values]


def check_where(on: str, scheduler: str | None = None, workers: int | None = None) -> int:
    """How many processes to start, where it can be asked for; see `run_study`."""
    validation.choice("on", on, PLACES)
    if scheduler is not None and on != "dask":
        raise InvalidInput("scheduler", scheduler, "must be used with a Dask cluster")
    if workers is not None:
        return validation.integer("workers", workers, at_least=1, at_most=1024)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def _terminable() -> Iterator[None]:
    """Treat SIGTERM, which schedulers of clusters send, like Ctrl-C.

    Only the main thread can set signal handlers; in other threads SIGTERM keeps its handler.
    """
    before = signal.getsignal(signal.SIGTERM)
    # A handler that was not set by Python cannot be restored by it.
    if threading.current_thread() is not threading.main_thread() or before is None:
        yield
        return

    def stop(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
