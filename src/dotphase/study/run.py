"""Run the unfinished points of a study, record them in its journal and build its dataset."""

import json
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from dotphase.config import validation
from dotphase.errors import Interrupted, InvalidInput
from dotphase.runtime import interrupt
from dotphase.runtime.progress import Progress, ProgressCallback, ProgressEvent, reporter
from dotphase.storage.files import remove_leftovers, write_dataset
from dotphase.storage.journal import Journal, storage_errors
from dotphase.storage.labels import add_default_labels
from dotphase.storage.provenance import provenance
from dotphase.study.cluster import connect, exit_in_unguarded_worker, run_on_dask
from dotphase.study.journal import DATASET, RECENT, open_journal, rate_of, read_contents
from dotphase.study.local import Step, run_on_processes, run_serially
from dotphase.study.spec import Study, read_spec
from dotphase.study.tasks import TASKS

#: Processes of this machine, a Dask cluster, or the calling process.
ENGINES = ("local", "dask", "serial")
#: Values of failed points in a dataset, by type.
MISSING = {float: np.nan, int: -1, bool: False, str: ""}


@dataclass(frozen=True)
class StudyProgress:
    """Result in the progress events of a study.

    Attributes
    ----------
    failed : number of points that failed in this run
    rate : finished points per second over the last points; None before the first
    seconds_left : estimated seconds until the end; None without a rate
    damaged : journal rows that changed on disk; their points are computed again
    """

    failed: int
    rate: float | None
    seconds_left: float | None
    damaged: int


def run_study(
    study: Study | str | Path,
    folder: str | Path,
    *,
    engine: str = "local",
    scheduler: str | None = None,
    workers: int | None = None,
    max_seconds: float | None = None,
    progress: Progress = None,
) -> xr.Dataset:
    """Compute the unfinished points of a study.

    Parameters
    ----------
    study : Study or path
        The study, or the TOML file that describes it.
    folder : path
        Folder of the study: new, empty, or with unfinished results of the same study, which is
        resumed. Failed points are tried again.
    engine : {"local", "dask", "serial"}
        Processes on this machine, a Dask cluster, or the calling process.
    scheduler : str, optional
        Address of an existing Dask cluster; by default one is started on 127.0.0.1.
    workers : int, optional
        Number of processes to start; by default one per core.
    max_seconds : float, optional
        Time after which a point fails, and with ``engine="local"`` its process is killed. The
        engine "serial" has no such limit.
    progress : bool or callable, optional
        Receives a `ProgressEvent` at the beginning and whenever points are recorded. Its ``done``
        counts failed points too; its ``result`` has ``failed``, ``rate``, ``seconds_left``
        and ``damaged``.

    Returns
    -------
    xarray.Dataset
        With one dimension per swept parameter and one for the seed; also written to
        ``study.nc`` in the folder. It depends neither on interruptions nor on the number of
        workers. Where a point failed, ``done`` is false and ``reason`` contains the error.

    Raises
    ------
    Interrupted
        A `KeyboardInterrupt`, also on SIGTERM, with the dataset of the finished points.

    Examples
    --------
    >>> study = dp.Study("regression", sweep={"alpha": [0.5, 2.0]})
    >>> dataset = dp.run_study(study, "ridge", engine="serial")
    >>> dataset["V"].dims
    ('alpha', 'seed')
    """
    study = study if isinstance(study, Study) else read_spec(study)
    count = check_engine(engine, scheduler, workers)
    if max_seconds is not None:
        validation.number("max_seconds", max_seconds, above=0)
        if engine == "serial":
            rule = "must be used with worker processes or Dask"
            raise InvalidInput("max_seconds", max_seconds, rule)
    if engine == "dask":
        exit_in_unguarded_worker()
    with _interrupt_on_sigterm(), ExitStack() as stack:
        # Connect first: a wrong address must not leave an empty folder behind.
        client = stack.enter_context(connect(count, scheduler)) if scheduler is not None else None
        journal = stack.enter_context(open_journal(folder, study, provenance(task=study.task)))
        try:
            remove_leftovers(Path(folder) / DATASET)
            unfinished = [index for index in range(study.size) if index not in journal.done]
            if engine == "serial" or not unfinished:
                steps = run_serially(study, unfinished)
            elif engine == "local":
                steps = run_on_processes(study, unfinished, count, max_seconds or 0.0)
            else:
                client = client or stack.enter_context(connect(count, None))
                steps = run_on_dask(client, study, unfinished, max_seconds or 0.0)
            _record(steps, journal, study, reporter(progress))
            dataset = read_study(folder)
            with storage_errors(Path(folder)):
                write_dataset(dataset, Path(folder) / DATASET)
        except KeyboardInterrupt:
            interrupt.begin_handover()
            raise Interrupted(read_study(folder)) from None
    return dataset


def _record(
    steps: Generator[Step, None, None], journal: Journal, study: Study, report: ProgressCallback
) -> None:
    """Record finished points in the journal before new ones are sent out."""
    n_before, n_finished, failed, started = len(journal.done), 0, 0, time.time()
    times: deque[float] = deque(maxlen=RECENT + 1)

    def report_progress(now: float) -> None:
        done = n_before + n_finished
        rate = rate_of(started, list(times), now)
        seconds_left = (study.size - done) / rate if rate else None
        result = StudyProgress(failed, rate, seconds_left, journal.damaged)
        report(ProgressEvent(f"{study.task} study", done, study.size, result))

    report_progress(started)
    with closing(steps):
        for step in steps:
            if step.finished or step.started:
                journal.record(step.finished, step.started)
            if not step.finished:
                continue
            now = time.time()
            n_finished += len(step.finished)
            failed += sum(point.values is None for point in step.finished)
            times.extendleft([now] * len(step.finished))
            report_progress(now)


def read_study(folder: str | Path) -> xr.Dataset:
    """Return the dataset of a study's finished points, also while it is running.

    Parameters
    ----------
    folder : path
        Folder of the study, as in `run_study`.

    Examples
    --------
    >>> study = dp.Study("regression", sweep={"alpha": [0.5, 2.0]})
    >>> dataset = dp.run_study(study, "ridge", engine="serial")
    >>> dp.read_study("ridge").identical(dataset)
    True
    """
    study, contents = read_contents(folder)
    results = TASKS[study.task].results
    kinds: dict[type, Any] = {float: np.float64, int: np.int64, bool: np.bool_, str: object}
    columns = {
        name: np.full(study.size, MISSING[result.kind], kinds[result.kind])
        for name, result in results.items()
    }
    done = np.zeros(study.size, bool)
    reason = np.full(study.size, "", object)
    for point in contents.points:
        if point.values is None:
            reason[point.index] = point.reason
            continue
        done[point.index] = True
        for name in results:
            columns[name][point.index] = point.values[name]
    dataset = xr.Dataset(
        coords={name: _coordinate(values) for name, values in study.dimensions.items()},
        attrs=_attributes(study, contents.provenance, contents.software),
    )
    descriptions = {name: result.description for name, result in results.items()}
    columns |= {"done": done, "reason": reason}
    descriptions |= {"done": "whether the point was computed", "reason": "why it failed"}
    for name, values in columns.items():
        text = values.astype(str) if values.dtype == object else values
        attributes = {"description": descriptions[name]}
        dataset[name] = (tuple(study.dimensions), text.reshape(study.shape), attributes)
    return add_default_labels(dataset)


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


def _coordinate(values: tuple[Any, ...]) -> list[Any]:
    """Convert swept values to numbers or texts, for the coordinate of a dataset."""
    if all(isinstance(value, int | float | str) for value in values):
        return list(values)
    return [value if isinstance(value, str) else json.dumps(value) for value in values]


def check_engine(engine: str, scheduler: str | None = None, workers: int | None = None) -> int:
    """Check the arguments of `run_study`; return the number of processes to start."""
    validation.choice("engine", engine, ENGINES)
    if scheduler is not None and engine != "dask":
        raise InvalidInput("scheduler", scheduler, "must be used with a Dask cluster")
    if workers is not None:
        return validation.integer("workers", workers, at_least=1, at_most=1024)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def _interrupt_on_sigterm() -> Iterator[None]:
    """Treat SIGTERM, which schedulers of clusters send, like Ctrl-C.

    Only the main thread can set signal handlers; in other threads SIGTERM keeps its handler.
    """
    before = signal.getsignal(signal.SIGTERM)
    # Python cannot restore a handler that was not set by Python.
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
