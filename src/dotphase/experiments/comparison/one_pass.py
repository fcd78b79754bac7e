"""One pass at dimension d: `online`, and students that see every sentence once."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from dotphase.config import validation
from dotphase.config.settings import replace_fields
from dotphase.dmft.online import QUANTITIES, online
from dotphase.dmft.settings import OnlineSettings
from dotphase.errors import InvalidInput
from dotphase.finite_d.datasets import count_sentences
from dotphase.model import Model
from dotphase.model.linear_layer import linear_test_error
from dotphase.runtime.progress import Progress
from dotphase.training.run import train

#: Learning rate of theory and students.
LEARNING_RATE = 4.0


def one_pass(
    model: Model,
    alphas: Sequence[float],
    starts: Sequence[str],
    d: int,
    seeds: int,
    settings: Any,
    changes: Mapping[str, Any],
    progress: Progress,
) -> tuple[xr.Dataset, xr.Dataset, dict[str, Any]]:
    """Return the theory, trained students, and the settings of both.

    Alphas are those of the nearest records of training.
    """
    lr = changes.get("lr", LEARNING_RATE)
    own = {name: value for name, value in changes.items() if name != "lr"}
    settings = replace_fields(settings or OnlineSettings(), own)
    if settings.spherical:
        raise InvalidInput("spherical", True, "must be False: students are not rescaled")
    grid = validation.grid("alphas", alphas)
    end, duration = float(grid[-1]), settings.duration(d)
    steps = count_sentences(model, end, d) // settings.batch(d)
    rates = settings.learning_rates(lr, end, duration * np.arange(max(steps, 1)))
    theory, students = [], []
    for start in starts:
        records: Any = train(
            model, end, d, seeds=seeds, start=start, optimizer="sgd", fresh=True, record=True,
            minibatch=settings.batch(d), steps=steps, lr=np.broadcast_to(rates, steps).tolist(),
            scale=settings.scale, seed=settings.seed, held_out=2,
            progress=progress,
        ).path  # fmt: skip
        runs = records[list(QUANTITIES)].swap_dims(step="alpha").sel(alpha=grid, method="nearest")
        runs = runs.drop_duplicates("alpha")
        moments = runs["alpha"].values.tolist()
        path = online(model, moments, lr, start, d=d, settings=settings).dataset()
        path = path.isel(alpha=slice(-runs.sizes["alpha"], None))
        theory.append(path.assign_coords(alpha=runs["alpha"]))
        students.append(runs.drop_vars("step"))
    branch = xr.Variable("branch", list(starts))
    expected = xr.concat(theory, branch, combine_attrs="override").drop_vars("step")
    finite = expected["test_error"].notnull()
    facts = {"on_branch": xr.ones_like(finite), "trusted": finite, "converged": finite}
    expected = expected.assign(facts)
    expected["linear_test_error"] = linear_test_error(model, seed=settings.seed)
    rule = {"schedule": settings.schedule, "batch_fraction": settings.batch_fraction}
    rule |= {} if callable(lr) else {"lr": lr}
    return expected, xr.concat(students, branch), rule
