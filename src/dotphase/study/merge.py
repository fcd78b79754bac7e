"""Merge studies: one folder with the points of several."""

from dataclasses import replace
from functools import reduce
from pathlib import Path

import xarray as xr

from dotphase.errors import InvalidInput
from dotphase.storage.files import write_dataset
from dotphase.storage.journal import DATABASE, storage_errors
from dotphase.study.identity import new_indices, union
from dotphase.study.journal import DATASET, open_journal, read_contents
from dotphase.study.run import read_study


def merge_studies(folder: str | Path, *sources: str | Path) -> xr.Dataset:
    """Add the finished points of other studies to a study.

    A point is identified by its task, model, parameters and seed. Points that the folder has
    already are kept. The axes become the union of those of all studies; `run_study` with a
    study of these axes computes the points that are still missing.

    Parameters
    ----------
    folder : path
        Folder of a study; a new or empty folder receives the points of the others.
    *sources : path
        Folders of studies with the same task and model. They are not changed.

    Examples
    --------
    >>> for name, alphas in (("low", [0.5, 1.0]), ("high", [2.0])):
    ...     study = dp.Study("regression", sweep={"alpha": alphas})
    ...     dataset = dp.run_study(study, name, engine="serial")
    >>> dp.analysis.merge_studies("low", "high")["alpha"].values.tolist()
    [0.5, 1.0, 2.0]
    """
    for source in sources:
        if Path(source).resolve() == Path(folder).resolve():
            raise InvalidInput("study", str(source), "must differ from the folder to merge into")
    studies = [read_contents(source) for source in sources]
    stored = [read_contents(folder)[0]] if (Path(folder) / DATABASE).exists() else []
    merged = reduce(union, stored + [study for study, _ in studies])
    for study, contents in studies:
        indices = new_indices(study, merged)
        assert indices is not None  # `union` compares tasks and models
        with open_journal(folder, merged, contents.provenance) as journal:
            points = [
                replace(point, index=int(indices[point.index]))
                for point in contents.points
                if point.values is not None
            ]
            journal.record([point for point in points if point.index not in journal.done])
    dataset = read_study(folder)
    with storage_errors(Path(folder)):
        write_dataset(dataset, Path(folder) / DATASET)
    return dataset
