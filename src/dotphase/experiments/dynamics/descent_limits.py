"""Where gradient descent ends in the limit of large d: a prediction of what training finds.

State evolution knows the minima that exist, and only where replica symmetry holds. A descent has a
limit everywhere and from every start, and the end of it is what a student trained from there is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Unpack

import numpy as np
import xarray as xr

from dotphase.config import validation
from dotphase.config.settings import replace_fields
from dotphase.dmft.result import QUANTITIES, Trajectory
from dotphase.dmft.run import dynamics
from dotphase.dmft.settings import DynamicsFields, DynamicsSettings
from dotphase.finite_d.initialization import (
    PrescribedStart,
    changed_start,
    start_components,
    start_name,
)
from dotphase.finite_d.initializers import INITIALIZERS
from dotphase.model import Model
from dotphase.storage.provenance import provenance
from dotphase.theory.branches import BRANCHES
from dotphase.theory.classification import classify, matches_branch
from dotphase.theory.overlaps import Overlaps

#: Steps for theory and students alike: for two tokens about as far as the paper's 5000 of .15, and
#: small enough to be stable.
DESCENT: dict[str, Any] = {"lr": 4.0, "steps": 127}
#: Precision of a curve.
SETTINGS = DynamicsSettings(log2_ensemble=12, repetitions=4, rtol=None)
#: Largest step that is tried, and how often it may be halved. Larger ones may leave the basin that
#: the start lies in while the loss still falls.
LARGEST, HALVINGS = 4.0, 5
#: Steps at first, and the most: they are doubled until nothing moves any more.
FIRST, MOST = 63, 255
#: A loss that rises in a step by more than this share of itself: the steps are too large.
RISE = 0.02
#: What is still to come may be this share of a quantity's value at the end.
STILL = 0.02
#: A quantity whose changes fall by less than this factor when time doubles has no end in sight.
SLOWEST = 0.9


#: Where descents begin: names and overlaps, or these under other names.
Starts = Sequence[str | PrescribedStart] | Mapping[str, str | PrescribedStart]


class End(NamedTuple):
    """Where a descent ends.

    Attributes
    ----------
    path : the descent, as far as it was followed
    values, errors : of each of `QUANTITIES`; errors of the averages and of what is still to come
    settled : whether nothing moves any more, or the steps were as many as were asked for
    """

    path: Trajectory
    values: dict[str, float]
    errors: dict[str, float]
    settled: bool

    @property
    def trusted(self) -> bool:
        """Whether the repetitions agree to the last step."""
        return not self.path.diverged and self.path.trusted_until == self.path.steps[-1]

    @property
    def found(self) -> str:
        """Branch that the overlaps at the end belong to."""
        theta, m, q = (np.nan_to_num(part[-1]) for part in self.path.overlaps)
        return classify(self.path.model, Overlaps(q=q, m=m, V=np.zeros_like(q), theta=theta))


def ends(
    model: Model,
    alphas: Sequence[float],
    starts: Starts = ("semantic", "positional"),
    *,
    lr: float | None = None,
    steps: int | None = None,
    progress: Callable[[End], None] | None = None,
    settings: DynamicsSettings | None = None,
    **changes: Unpack[DynamicsFields],
) -> xr.Dataset:
    """What gradient descent ends at, along alpha; `dotphase.curve` with ``theory="dynamics"``.

    Parameters
    ----------
    model, alphas : as for `dotphase.curve`
    starts : sequence of str or `start_from`, or mapping
        Where descents begin; a mapping has a name for each.
    lr : float, optional
        Size of a step; the largest of 4, 2, 1, ... for which the loss falls if not given.
    steps : int, optional
        Steps after which to look; to the end, which is extrapolated, if not given.
    progress : callable, optional
        Called with each end as it is reached.
    settings, **changes
        As for `dotphase.dynamics`.
    """
    grid = validation.grid("alphas", alphas, increasing=False)
    if not isinstance(starts, Mapping):
        names = [start_name(start) for start in starts]
        own = [name for name, one in zip(names, starts, strict=True) if not isinstance(one, str)]
        validation.distinct_choices("start", names, [*INITIALIZERS, *own])
        starts = dict(zip(names, starts, strict=True))
    names = list(starts)
    settings = replace_fields(settings or SETTINGS, changes)
    rule = {name: getattr(settings, name) for name in ("momentum", "batch_fraction", "scale")}

    def end(start: str | PrescribedStart, alpha: float) -> End:
        found = descend(model, alpha, start, lr=lr, steps=steps, settings=settings)
        if progress is not None:
            progress(found)
        return found

    found = [[end(start, float(alpha)) for alpha in grid] for start in starts.values()]
    asked = {"alphas": grid, "branches": names, "theory": "dynamics", "steps": steps, **rule}
    shown = {name: getattr(settings, name) for name in ("log2_ensemble", "repetitions", "seed")}
    dataset = xr.Dataset(
        coords={"branch": names, "alpha": grid}, attrs=provenance(model, **asked, **shown)
    )
    axes = ("branch", "alpha")
    for name, text in QUANTITIES.items():
        dataset[name] = (axes, [[one.values[name] for one in row] for row in found])
        dataset[name].attrs["description"] = text
        dataset[f"{name}_stderr"] = (axes, [[one.errors[name] for one in row] for row in found])
    facts: dict[str, tuple[Callable[[End], object], str]] = {
        "found": (lambda one: one.found, "branch of the limit"),
        "converged": (lambda one: one.settled, "whether the descent has ended"),
        "trusted": (lambda one: one.trusted, "whether the repetitions agree"),
        "lr": (lambda one: float(one.path.lr[-1]), "size of a step"),
        "iterations": (lambda one: int(one.path.steps[-1]), "steps taken"),
        "gradient_norm": (lambda one: float(one.path.gradient_norm[-1]), "over sqrt d, at the end"),
    }
    for name, (read, text) in facts.items():
        dataset[name] = (axes, [[read(one) for one in row] for row in found])
        dataset[name].attrs["description"] = text
    kept = [
        [name not in BRANCHES or matches_branch(name, one.found) for one in row]
        for name, row in zip(names, found, strict=True)
    ]
    dataset["on_branch"] = (axes, kept, {"description": "whether it is like the start still"})
    return dataset


def starts_of_training(
    model: Model, names: Sequence[str], d: int
) -> dict[str, str | PrescribedStart]:
    """The starts of `dotphase.train` at dimension d, for descents in the limit.

    The positional one is a unit vector there: its m is smaller by sqrt d than in the limit.
    """

    def start(name: str) -> str | PrescribedStart:
        if name != "positional":
            return name
        return changed_start(model, name, m=start_components(model, name).m.T / np.sqrt(d))

    return {name: start(name) for name in names}


def descend(
    model: Model,
    alpha: float,
    start: str | PrescribedStart,
    *,
    lr: float | None,
    steps: int | None,
    settings: DynamicsSettings,
) -> End:
    """One descent to its end."""

    def run(size: float, count: int) -> Trajectory:
        return dynamics(model, alpha, start, steps=count, lr=size, settings=settings)

    size, count = LARGEST if lr is None else lr, FIRST if steps is None else steps
    path = run(size, count)
    for _ in range(HALVINGS if lr is None else 0):
        if not _too_large(path):
            break
        size /= 2
        path = run(size, count)
    if steps is not None:
        last = {name: float(getattr(path, name)[-1]) for name in QUANTITIES}
        return End(path, last, _last_errors(path), not path.diverged)
    while True:
        found = _extrapolated(path)
        longer = 2 * count + 1
        if found.settled or not found.trusted or longer > MOST:
            return found
        count = longer
        path = run(size, count)


def _too_large(path: Trajectory) -> bool:
    """Whether the steps were too large: the loss rises where no momentum makes it."""
    loss = path.train_loss
    rises = path.momentum == 0 and bool(np.any(np.diff(loss) > RISE * loss[1:]))
    return path.diverged or rises or not np.isfinite(loss).all()


def _last_errors(path: Trajectory) -> dict[str, float]:
    return {name: float(path.stderr[name][-1]) for name in QUANTITIES}


def _extrapolated(path: Trajectory) -> End:
    """The end as the times T/4, T/2 and T tell it.

    What decays exponentially or like a power of time changes from T/2 to T by a factor r < 1 less
    than from T/4 to T/2, and then by at most r/(1 - r) times that. All of it is taken for the
    error.
    """
    last = len(path.steps) - 1
    values, errors, settled = {}, _last_errors(path), not path.diverged
    for name in QUANTITIES:
        early, middle, late = getattr(path, name)[[last // 4, last // 2, last]]
        values[name], error = end_of(early, middle, late)
        settled &= bool(error <= max(STILL * abs(late), 2 * errors[name], 1e-9))
        errors[name] = float(np.hypot(errors[name], error))
    return End(path, values, errors, settled)


def end_of(early: float, middle: float, late: float) -> tuple[float, float]:
    """Limit of a sequence of which three members are known, time doubling, and its error."""
    before, now = middle - early, late - middle
    if not np.isfinite([before, now]).all():
        return float(late), float("nan")
    ratio = abs(now) / max(abs(before), np.finfo(float).tiny)
    if ratio >= SLOWEST or before * now <= 0:  # no law to be seen
        return float(late), float(abs(now))
    to_come = now * ratio / (1 - ratio)
    return float(late + to_come), float(abs(to_come))
