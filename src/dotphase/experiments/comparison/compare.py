"""Theory, training and message passing for one model on one grid of alpha.

Each branch of the theory is compared with students trained from the start of the same name. The
theory is that of minima of the training loss (replica symmetric), of gradient descent in the limit
of large d, or of one pass at this d; in the last two cases students take the same steps. Runs that
end with another mechanism than that of their start have left the branch (`_stayed`). Means are over
the others; the share of these is part of the result. One pass has no branches: all runs that have
not diverged count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import numpy as np
import xarray as xr

from dotphase.config import validation
from dotphase.dmft.settings import DynamicsSettings, OnlineSettings
from dotphase.errors import InvalidInput
from dotphase.experiments.comparison.agreement import (
    AGREES,
    DIFFERS,
    FINITE_SIZE,
    SHARE,
    allowed,
    judge,
    student_factor,
)
from dotphase.experiments.comparison.one_pass import one_pass
from dotphase.experiments.dynamics.descent_limits import DESCENT, training_starts
from dotphase.experiments.theory.curve import THEORIES, CurveFields, curve
from dotphase.experiments.theory.solution_variables import RESULTS
from dotphase.experiments.training.averages import mean_and_error
from dotphase.experiments.training.grid import grid
from dotphase.finite_d.initializers import INITIALIZERS
from dotphase.finite_d.overlaps import positional_alignment
from dotphase.gamp.run import run_message_passing
from dotphase.gamp.settings import AmpSettings
from dotphase.model import Model
from dotphase.runtime.progress import Progress, ProgressCallback, ProgressCounter, reporter
from dotphase.storage.labels import add_labels
from dotphase.storage.provenance import provenance
from dotphase.theory.branches import BRANCHES
from dotphase.theory.finite_d_corrections import is_known
from dotphase.theory.settings import SolverSettings

#: Quantities of every source.
QUANTITIES = {name: RESULTS[name] for name in ("train_loss", "test_error", "m", "theta", "q")}
#: Quantities with known terms of order 1/d.
LOSSES = ("train_loss", "test_error")
#: Verdicts at points without a comparison of numbers.
NO_BRANCH, LEFT = "no such branch", "training leaves it"
#: Name of the theory of one pass.
ONE_PASS = "one_pass"


class CompareFields(CurveFields, total=False):
    """Fields of `CurveFields`, and the schedule of one pass."""

    schedule: str


def compare(
    model: Model,
    alphas: Sequence[float],
    d: int = 1000,
    *,
    seeds: int = 4,
    branches: Sequence[str] = ("semantic", "positional"),
    theory: str = "state_evolution",
    amp: bool = False,
    progress: Progress = None,
    settings: SolverSettings | DynamicsSettings | OnlineSettings | None = None,
    **changes: Unpack[CompareFields],
) -> xr.Dataset:
    """Solve a model, train it on the same grid of alpha, and give a verdict at each point.

    Parameters
    ----------
    model : Model
        Teacher, student and data.
    alphas : sequence of float
        Sample complexities n/d, no two the same.
    d : int
        Dimension of a token in training.
    seeds : int
        Data sets for each alpha, which all starts share.
    branches : sequence of str
        Branches of the theory, each compared with training from the start of its name. One pass
        may also start from "random".
    theory : {"state_evolution", "dynamics", "one_pass"}
        Minima of the training loss, for students trained to the end; gradient descent with a given
        number of steps, for students that take the same steps; or `online` at this d, for students
        that see every sentence once. The last has no training loss, and its alphas are rounded to
        the steps at which training is recorded, about a hundred.
    amp : bool
        Run message passing as well.
    progress : bool or callable, optional
        Receives an event for points of the theory, then for cells of the training grid and for runs
        of message passing (`dotphase.results.ProgressEvent`).
    settings, **changes
        Of the theory, as for `curve`; `seed` is also that of training. With the dynamics, lr and
        steps of both theory and students, by default 127 steps of 4. With one pass, lr (by default
        4) and the fields of `OnlineSettings`.

    Returns
    -------
    xarray.Dataset
        Dimensions ``source`` ("theory", "training", possibly "amp"), ``branch`` and ``alpha``;
        every quantity with its ``_stderr``. ``verdict`` for each branch and alpha is "agrees",
        "differs", "no such branch" (of the theory) or "training leaves it" (most runs do, or all
        but one). ``score`` is the largest difference between theory and training relative to the
        allowed one, and ``worst`` its quantity. Allowed are 3 combined standard errors, with
        Student's factor for the number of data sets (3.1 for four), 1%, and 10/d of the number for
        unknown terms of order 1/d. Losses of the theory are those in
        dimension d, with the known terms of order 1/d; ``train_loss_limit`` and
        ``test_error_limit`` are without them (the dynamics has only the limit). ``stayed`` is the
        share of runs that end on the branch of their start. The attribute ``theory`` is the name
        of the theory.

    Examples
    --------
    >>> import dotphase as dp
    >>> both = dp.compare(dp.positional_semantic(), [2.0], d=40, seeds=2, log2_points=12)
    >>> both["source"].values.tolist(), both["verdict"].sizes["branch"]
    (['theory', 'training'], 2)
    """
    validation.choice("theory", theory, (*THEORIES, ONE_PASS))
    both = [name for name in INITIALIZERS if name in BRANCHES or theory == ONE_PASS]
    names = validation.distinct_choices("branches", branches, both)
    validation.integer("seeds", seeds, at_least=2)
    if amp and theory == ONE_PASS:
        raise InvalidInput("amp", amp, "must be False for one pass")
    report = reporter(progress)
    rule: dict[str, Any] = {}
    if theory == "dynamics":
        rule = _plain_descent(changes)
        changes |= {**rule, "start": training_starts(model, names, d)}  # type: ignore[typeddict-item]
        rule = {"optimizer": "gd", **rule}
    if theory == ONE_PASS:
        expected, runs, rule = one_pass(model, alphas, names, d, seeds, settings, changes, report)
        stayed = runs["test_error"].notnull()
    else:
        options: Any = {"settings": settings, "progress": report, **changes}
        finite = d if theory != "dynamics" and is_known(model) else None
        expected = curve(model, alphas, names, theory=theory, d=finite, **options)
        runs = grid(
            lambda _: model, alphas, [0.0], d, parameter="model", starts=names, seeds=seeds,
            seed=int(expected.attrs["seed"]), progress=report, **rule,
        ).isel(model=0, drop=True).rename(start="branch")  # fmt: skip
        stayed = _stayed(runs, expected, model)
    seed = int(expected.attrs["seed"])
    sources = {"theory": _select_theory(expected), "training": means(runs.where(stayed))}
    if amp:
        sources["amp"] = _message_passing(
            model, expected["alpha"].values, names, d, seeds, seed, report
        )
    attributes = {"theory": theory, "alphas": expected["alpha"].values, "d": d, "seeds": seeds}
    dataset = _combine(sources, expected, stayed)
    dataset.attrs = provenance(model, **attributes, seed=seed, **rule)
    return add_labels(_add_verdicts(dataset))


def _select_theory(expected: xr.Dataset) -> xr.Dataset:
    """The common quantities of the theory, with the losses in dimension d if they are known."""
    names = [name for name in QUANTITIES if name in expected]
    theory = expected[[*names, *(f"{name}_stderr" for name in names)]]
    for name in LOSSES:
        if f"{name}_at_d" in expected:
            theory[name] = expected[f"{name}_at_d"].fillna(expected[name])
    return theory


def _combine(
    sources: Mapping[str, xr.Dataset], expected: xr.Dataset, stayed: xr.DataArray
) -> xr.Dataset:
    """Join the sources, and add the facts about each branch of the theory."""
    dataset = xr.concat(
        sources.values(), xr.Variable("source", list(sources)), coords="minimal", compat="override"
    ).transpose("source", "branch", "alpha")
    for name in filter(dataset.__contains__, QUANTITIES):
        dataset[name].attrs["description"] = QUANTITIES[name]
        dataset[f"{name}_stderr"].attrs["description"] = "standard error"
    for name in ("on_branch", "kind", "trusted", "converged", "linear_test_error"):
        if name in expected:
            dataset[name] = expected[name]
    for name in filter(expected.__contains__, LOSSES if "train_loss" in expected else ()):
        dataset[f"{name}_limit"] = expected[name].assign_attrs(description="theory at infinite d")
    dataset["stayed"] = stayed.mean("seed").transpose("branch", "alpha")
    dataset["stayed"].attrs["description"] = "share of runs that end on the branch of their start"
    return dataset


def _plain_descent(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Step size and number of steps of theory and students."""
    for name in ("start", "momentum", "batch_fraction", "scale"):
        if name in changes:
            raise InvalidInput(name, changes[name], "must not be given: students take plain steps")
    return {name: changes.get(name, value) for name, value in DESCENT.items()}


def _stayed(runs: xr.Dataset, theory: xr.Dataset, model: Model) -> xr.DataArray:
    """True for runs with the mechanism of their start.

    From a mixed start, also for runs with at least half of either alignment of the theory. The
    mixed branch of long sentences has alignments below .5, which `mechanism_of` requires.
    """
    rho, tiny = float(model.rho[0]), np.finfo(float).tiny
    m, theta, q = (theory[name] for name in ("m", "theta", "q"))
    semantic = theta / (np.sqrt(q * rho * model.teacher_rank) + tiny)
    mixed = (runs["semantic_alignment"] > semantic / 2) & (
        runs["positional_alignment"] > positional_alignment(m, q) / 2
    )
    expected = [BRANCHES[name].variant_of or name for name in runs["branch"].values.tolist()]
    is_expected = runs["mechanism"] == xr.DataArray(expected, dims="branch")
    return is_expected | ((runs["branch"] == "mixed") & mixed)


def means(runs: xr.Dataset) -> xr.Dataset:
    """Means over the seeds that are not missing, with standard errors."""
    columns = {}
    for name in filter(runs.__contains__, QUANTITIES):
        columns[name], columns[f"{name}_stderr"] = mean_and_error(runs[name])
    return xr.Dataset(columns)


def _message_passing(
    model: Model,
    alphas: np.ndarray,
    names: Sequence[str],
    d: int,
    seeds: int,
    seed: int,
    report: ProgressCallback,
) -> xr.Dataset:
    """Means of message passing from each start, over the runs that converged."""
    settings = AmpSettings(seed=seed)
    counter = ProgressCounter("message passing", len(names) * len(alphas) * seeds, report)

    def column(alpha: float, name: str) -> xr.Dataset:
        passing = run_message_passing(
            model, alpha, d, seeds=seeds, start=name, settings=settings,
            progress=lambda event: counter.tick(event.result),
        )  # fmt: skip
        values = {
            quantity: [getattr(run, quantity) if run.converged else np.nan for run in passing.runs]
            for quantity in QUANTITIES
        }
        return means(xr.Dataset({name: ("seed", row) for name, row in values.items()}))

    rows = [
        xr.concat([column(float(alpha), name) for alpha in alphas], xr.Variable("alpha", alphas))
        for name in names
    ]
    return xr.concat(rows, xr.Variable("branch", list(names)))


def _add_verdicts(dataset: xr.Dataset) -> xr.Dataset:
    """Add verdict, score and worst quantity of every point."""
    shape = dataset["stayed"].shape
    columns = [
        np.full(shape, NO_BRANCH, object),
        np.full(shape, np.nan),
        np.full(shape, "", object),
    ]
    for cell in np.ndindex(shape):
        point = dataset.isel(branch=cell[0], alpha=cell[1])
        for column, value in zip(columns, _verdict(point), strict=True):
            column[cell] = value
    verdict, score, worst = columns
    dims = ("branch", "alpha")
    words = {"description": f"{AGREES}, {DIFFERS}, {NO_BRANCH} or {LEFT}"}
    dataset["verdict"] = (dims, verdict.astype(str), words)
    dataset["score"] = (dims, score, {"description": "largest difference over the allowed one"})
    dataset["worst"] = (dims, worst.astype(str), {"description": "quantity that differs most"})
    return dataset


def _verdict(point: xr.Dataset) -> tuple[str, float, str]:
    """Verdict, score and worst quantity of one point."""
    theory, training = (point.sel(source=name) for name in ("theory", "training"))
    if not bool(theory["on_branch"]):
        return NO_BRANCH, np.nan, ""
    if float(theory["stayed"]) < 0.5 or not np.isfinite(training["test_error_stderr"]):
        return LEFT, np.nan, ""
    share = SHARE + FINITE_SIZE / float(point.attrs["d"])
    few = student_factor(round(float(theory["stayed"]) * int(point.attrs["seeds"])))
    scores: dict[str, float] = {}
    for name in filter(point.__contains__, QUANTITIES):
        expected = float(theory[name])
        if expected == 0:
            continue  # vanishes by symmetry: of order 1/sqrt(d) at finite d
        errors = [float(source[f"{name}_stderr"]) for source in (theory, training)]
        limit = allowed(expected, errors[0], few * errors[1], share=share)
        scores[name] = abs(float(training[name]) - expected) / limit
    score, name = max((score, name) for name, score in scores.items())
    return judge(score, 1.0), score, name
