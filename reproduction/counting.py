"""The histogram experiment behind two items of the reproduction, run once for both."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import dotphase as dp
from dotphase.histogram import Experiment, run
from reproduction.store import Parts

#: Folder and file that the items share.
FOLDER, FILE = "histogram", "experiment.nc"

#: Sizes of the items: one run that stops early, or the paper's ten for 200 epochs.
SIZES: dict[str, Mapping[str, Any]] = {
    "quick": {"runs": 1, "epochs": 60, "target": 0.998, "release_epochs": 5},
    "full": {"runs": 10, "epochs": 200, "target": None, "release_epochs": 100},
}


def counting_networks(parts: Parts, sizes: Mapping[str, Any]) -> Experiment:
    """Load the stored experiment, or train it with a checkpoint after every epoch."""
    folder = parts.folder.parent / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / FILE
    with suppress(dp.InvalidInput):  # missing or damaged: train again
        stored: Experiment = dp.load(path)
        config = {"runs": stored.runs, **stored.settings.to_dict()}
        if sizes.items() <= config.items():
            return stored
    parts.report("both mechanisms")
    result = run("both", release=True, landscape=True, checkpoint=folder, **sizes)
    result.save(path)
    for unfinished in folder.glob("*.checkpoint.npz"):
        unfinished.unlink()
    return result
