"""One model in theory, in training and in message passing, on one grid of alpha.

Each branch of the theory is compared with students that are trained from the start of the same
name. Theory are the minima of the training loss (replica symmetric), or what gradient descent finds
in the limit of large d; students then take the same steps. Runs that end with another mechanism
than they began with have left the branch (`_stayed`); means are over those that stayed, and the
share of them is told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Unpack

import numpy as np
import xarray as xr

from dotphase.config import validation
from dotphase.dmft.settings import DynamicsSettings
from dotphase.errors import InvalidInput
from dotphase.experiments.comparison.agreement import (
    AGREES,
    DIFFERS,
    FINITE_SIZE,
    SHARE,
    allowed,
    judge,
)
from dotphase.experiments.comparison.amp import amp as pass_messages
from dotphase.experiments.dynamics.descent_limits import DESCENT, starts_of_training
from dotphase.experiments.theory.curve import CurveFields, curve
from dotphase.experiments.theory.solution_variables import RESULTS
from dotphase.experiments.training.averages import mean_and_error
from dotphase.experiments.training.grid import grid
from dotphase.finite_d.initializers import INITIALIZERS
from dotphase.finite_d.overlaps import positional_alignment
from dotphase.model import Model
from dotphase.storage.labels import add_labels
from dotphase.storage.provenance import provenance
from dotphase.theory.branches import BRANCHES
from dotphase.theory.finite_d_corrections import is_known
from dotphase.theory.settings import SolverSettings

#: What the sources have in common.
QUANTITIES = {name: RESULTS[name] for name in ("train_loss", "test_error", "m", "theta", "q")}
#: Verdicts besides those of a comparison of numbers.
NO_BRANCH, LEFT = "no such branch", "training leaves it"


def compare(
    model: Model,
    alphas: Sequence[float],
    d: int = 1000,
    *,
    seeds: int = 4,
    branches: Sequence[str] = ("semantic", "positional"),
    theory: str = "state_evolution",
    amp: bool = False,
    progress: Callable[[str], None] | None = None,
    settings: SolverSettings | DynamicsSettings | None = None,
    **changes: Unpack[CurveFields],
) -> xr.Dataset:
    """Solve a model and train it on the same grid, and say at each point whether they agree.

    Parameters
    ----------
    model : Model
        Teacher, student and data.
    alphas : sequence of float
        Sample complexities n/d, no two the same.
    d : int
        Dimension of a token in training.
    seeds : int
        Data sets for each alpha; the starts share them.
    branches : sequence of str
        Branches of the theory, each beside training from the start of its name.
    theory : {"state_evolution", "dynamics"}
        Which theory: minima of the training loss, beside students trained to the end, or gradient
        descent of a number of steps, beside students that take the same.
    amp : bool
        Whether to run message passing as well.
    progress : callable, optional
        Called with the name of each source before it begins.
    settings, **changes
        Of the theory, as for `curve` with this theory; `seed` is the seed of training as well. With
        the dynamics, lr and steps of theory and students alike, 127 steps of 4 if not given.

    Returns
    -------
    xarray.Dataset
        Dimensions ``source`` ("theory", "training", possibly "amp"), ``branch`` and ``alpha``;
        every quantity with its ``_stderr``. ``verdict`` for each branch and alpha is "agrees",
        "differs", "no such branch" (the theory has none) or "training leaves it" (most runs do, or
        all but one); ``score`` is the
        largest difference between theory and training over what is allowed, and ``worst`` the
        quantity it belongs to. The losses of the theory are those at this d, with the terms of
        order 1/d that are known; ``train_loss_limit`` and ``test_error_limit`` are without (the
        dynamics has the limit alone). Allowed are 3 combined standard errors, 1%, and 10/d of the
        number, for the terms that are not. ``stayed`` is the share of runs that ended where they
        began, ``trusted`` whether the theory can be trusted. The attribute ``theory`` says which
        theory it is.

    Examples
    --------
    >>> import dotphase as dp
    >>> both = dp.compare(dp.positional_semantic(), [2.0], d=40, seeds=2, log2_points=12)
    >>> both["source"].values.tolist(), both["verdict"].sizes["branch"]
    (['theory', 'training'], 2)
    """
    both = [name for name in BRANCHES if name in INITIALIZERS]
    names = validation.distinct_choices("branches", branches, both)
    validation.integer("seeds", seeds, at_least=2)
    tell = progress or (lambda source: None)
    rule: dict[str, Any] = {}
    if theory == "dynamics":
        rule = _plain_descent(changes)
        changes |= {**rule, "start": starts_of_training(model, names, d)}  # type: ignore[typeddict-item]
        rule = {"optimizer": "gd", **rule}
    tell("theory")
    finite = d if theory != "dynamics" and is_known(model) else None
    expected = curve(model, alphas, names, theory=theory, d=finite, settings=settings, **changes)
    seed = int(expected.attrs["seed"])
    tell("training")
    runs = grid(lambda _: model, alphas, [0.0], d, parameter="model", starts=names, seeds=seeds,
                seed=seed, **rule).isel(model=0)  # fmt: skip
    sources = {"theory": expected[[*QUANTITIES, *(f"{name}_stderr" for name in QUANTITIES)]]}
    if finite:
        at_d = {name: expected[f"{name}_at_d"] for name in ("train_loss", "test_error")}
        limit = {name: expected[name] for name in at_d}
        sources["theory"] = sources["theory"].assign(
            {name: values.fillna(limit[name]) for name, values in at_d.items()}
        )
    runs = runs.rename(start="branch")
    stayed = _stayed(runs, expected, model)
    sources["training"] = means(runs.where(stayed))
    if amp:
        tell("message passing")
        sources["amp"] = _message_passing(model, expected["alpha"].values, names, d, seeds, seed)
    dataset = xr.concat(
        sources.values(), xr.Variable("source", list(sources)), coords="minimal", compat="override"
    )
    dataset = dataset.transpose("source", "branch", "alpha")
    asked = {"alphas": expected["alpha"].values, "d": d, "seeds": seeds, "seed": seed}
    dataset.attrs = provenance(model, theory=theory, **asked, **rule)
    for name, text in QUANTITIES.items():
        dataset[name].attrs["description"] = text
        dataset[f"{name}_stderr"].attrs["description"] = "standard error"
    for name in ("on_branch", "kind", "trusted", "converged", "linear_test_error"):
        if name in expected:
            dataset[name] = expected[name]
    for name in ("train_loss", "test_error"):
        dataset[f"{name}_limit"] = expected[name].assign_attrs(description="theory at infinite d")
    dataset["stayed"] = stayed.mean("seed").transpose("branch", "alpha")
    dataset["stayed"].attrs["description"] = "share of runs that end on the branch they began on"
    return add_labels(_judged(dataset))


def _plain_descent(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Steps that theory and students share."""
    for name in ("start", "momentum", "batch_fraction", "scale"):
        if name in asked:
            raise InvalidInput(name, asked[name], "must not be given: students take plain steps")
    return {name: asked.get(name, value) for name, value in DESCENT.items()}


def _stayed(runs: xr.Dataset, theory: xr.Dataset, model: Model) -> xr.DataArray:
    """Whether each run is where it began: it has the mechanism of that name, or, where it began
    mixed, at least half of either alignment that the theory has on that branch.

    The second because `mechanism_of` calls mixed what is aligned by more than .5 with both, and
    the mixed branch of long sentences has less.
    """
    rho, tiny = float(model.rho[0]), np.finfo(float).tiny
    m, theta, q = (theory[name] for name in ("m", "theta", "q"))
    semantic = theta / (np.sqrt(q * rho * model.teacher_rank) + tiny)
    both = (runs["semantic_alignment"] > semantic / 2) & (
        runs["positional_alignment"] > positional_alignment(m, q) / 2
    )
    return (runs["mechanism"] == runs["branch"]) | ((runs["branch"] == "mixed") & both)


def means(runs: xr.Dataset) -> xr.Dataset:
    """Means over the seeds that are not missing, with standard errors; NaN for fewer than two."""
    columns = {}
    for name in QUANTITIES:
        columns[name], columns[f"{name}_stderr"] = mean_and_error(runs[name])
    return xr.Dataset(columns)


def _message_passing(
    model: Model, alphas: np.ndarray, names: Sequence[str], d: int, seeds: int, seed: int
) -> xr.Dataset:
    """Message passing from each start; the runs that converged count."""

    def column(alpha: float, name: str) -> xr.Dataset:
        found = pass_messages(model, alpha, d, seeds=seeds, start=name, seed=seed).runs
        values = {
            part: [getattr(run, part) if run.converged else np.nan for run in found]
            for part in QUANTITIES
        }
        return means(xr.Dataset({part: ("seed", row) for part, row in values.items()}))

    rows = [
        xr.concat([column(float(alpha), name) for alpha in alphas], xr.Variable("alpha", alphas))
        for name in names
    ]
    return xr.concat(rows, xr.Variable("branch", list(names)))


def _judged(dataset: xr.Dataset) -> xr.Dataset:
    """Add the verdict on every point, with the number behind it."""
    share = SHARE + FINITE_SIZE / float(dataset.attrs["d"])
    shape = dataset["stayed"].shape
    verdict, worst = np.full(shape, NO_BRANCH, object), np.full(shape, "", object)
    score = np.full(shape, np.nan)
    theory, training = (dataset.sel(source=name) for name in ("theory", "training"))
    for place in np.ndindex(shape):
        here, there = (part.isel(branch=place[0], alpha=place[1]) for part in (theory, training))
        if not bool(here["on_branch"]):
            continue
        if float(here["stayed"]) < 0.5 or not np.isfinite(there["train_loss_stderr"]):
            verdict[place] = LEFT
            continue
        ratios: dict[str, float] = {}
        for name in QUANTITIES:
            expected = float(here[name])
            if expected == 0:
                continue  # vanishes by symmetry: of order 1/sqrt(d) at finite d
            errors = [float(part[f"{name}_stderr"]) for part in (here, there)]
            most = allowed(expected, *errors, share=share)
            ratios[name] = abs(float(there[name]) - expected) / most
        ratio, name = max((ratio, name) for name, ratio in ratios.items())
        verdict[place], score[place], worst[place] = judge(ratio, 1.0), ratio, name
    dims = ("branch", "alpha")
    words = {"description": f"{AGREES}, {DIFFERS}, {NO_BRANCH} or {LEFT}"}
    dataset["verdict"] = (dims, verdict.astype(str), words)
    dataset["score"] = (dims, score, {"description": "largest difference over what is allowed"})
    dataset["worst"] = (dims, worst.astype(str), {"description": "quantity that differs most"})
    return dataset
