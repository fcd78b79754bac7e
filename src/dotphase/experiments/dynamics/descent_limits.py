"""Limits of gradient descent at large d: a prediction of what training reaches.

State evolution describes existing minima, where replica symmetry holds. The dynamics has a limit
everywhere and from every start, and that is where a trained student ends.
"""

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
from dotphase.runtime.progress import Progress, ProgressCounter
from dotphase.storage.provenance import provenance
from dotphase.theory.branches import BRANCHES
from dotphase.theory.classification import classify, matches_branch
from dotphase.theory.overlaps import Overlaps

#: Steps of both theory and students: stable, and for two tokens about as far as the 5000 steps of
#: .15 in the paper.
DESCENT: dict[str, Any] = {"lr": 4.0, "steps": 127}
#: Ensembles large enough for a curve.
SETTINGS = DynamicsSettings(log2_ensemble=12, repetitions=4, rtol=None)
#: Largest step size, and most halvings. A larger step may leave the basin of the start although the
#: loss falls.
MAX_LR, MAX_HALVINGS = 4.0, 5
#: First and largest number of steps; it is doubled until the descent has settled.
FIRST_STEPS, MAX_STEPS = 63, 255
#: Relative rise of the loss in one step from which on steps are too large.
MAX_RISE = 0.02
#: Largest extrapolation of a settled descent, relative to the last value.
SETTLED = 0.02
#: Ratio of successive changes, as time doubles, from which on there is no extrapolation.
MAX_RATIO = 0.9


#: Names and prescribed overlaps, or a mapping from names to them.
Starts = Sequence[str | PrescribedStart] | Mapping[str, str | PrescribedStart]


class DescentLimit(NamedTuple):
    """Limit of a descent."""

    path: Trajectory  #: the descent
    #: limits of `QUANTITIES`; errors of the averages and of the extrapolation
    values: dict[str, float]
    errors: dict[str, float]
    settled: bool  #: true if the extrapolation is small, or the number of steps was prescribed

    @property
    def trusted(self) -> bool:
        """True if the repetitions agree up to the last step."""
        return not self.path.diverged and self.path.trusted_until == self.path.steps[-1]

    @property
    def branch(self) -> str:
        """Branch of the last overlaps."""
        theta, m, q = (np.nan_to_num(part[-1]) for part in self.path.overlaps)
        return classify(self.path.model, Overlaps(q=q, m=m, V=np.zeros_like(q), theta=theta))


#: Variables of a curve besides `QUANTITIES`, with their descriptions.
FACTS: dict[str, tuple[Callable[[DescentLimit], object], str]] = {
    "found": (lambda limit: limit.branch, "branch of the limit"),
    "converged": (lambda limit: limit.settled, "true if the descent has settled"),
    "trusted": (lambda limit: limit.trusted, "true if the repetitions agree"),
    "lr": (lambda limit: float(limit.path.lr[-1]), "step size"),
    "iterations": (lambda limit: int(limit.path.steps[-1]), "number of steps"),
    "gradient_norm": (
        lambda limit: float(limit.path.gradient_norm[-1]),
        "norm of the last gradient over sqrt d",
    ),
}


def descent_limits(
    model: Model,
    alphas: Sequence[float],
    starts: Starts = ("semantic", "positional"),
    *,
    steps: int | None = None,
    lr: float | None = None,
    progress: Progress = None,
    settings: DynamicsSettings | None = None,
    **changes: Unpack[DynamicsFields],
) -> xr.Dataset:
    """Compute limits of gradient descent along alpha: `curve` with ``theory="dynamics"``."""
    grid = validation.grid("alphas", alphas, increasing=False)
    initial = _name_starts(starts)
    settings = replace_fields(settings or SETTINGS, changes)
    counter = ProgressCounter("descents", len(initial) * grid.size, progress)

    def compute(start: str | PrescribedStart, alpha: float) -> DescentLimit:
        limit = descend(model, alpha, start, steps=steps, lr=lr, settings=settings)
        counter.tick(limit)
        return limit

    limits = [[compute(start, float(alpha)) for alpha in grid] for start in initial.values()]
    names = ("momentum", "batch_fraction", "scale", "log2_ensemble", "repetitions", "seed")
    attributes = {name: getattr(settings, name) for name in names}
    attributes |= {"alphas": grid, "branches": list(initial), "theory": "dynamics", "steps": steps}
    dataset = xr.Dataset(
        coords={"branch": list(initial), "alpha": grid}, attrs=provenance(model, **attributes)
    )

    def add(name: str, rows: list[list[Any]], text: str) -> None:
        dataset[name] = (("branch", "alpha"), rows, {"description": text})

    for name, text in QUANTITIES.items():
        add(name, [[limit.values[name] for limit in row] for row in limits], text)
        errors = [[limit.errors[name] for limit in row] for row in limits]
        add(f"{name}_stderr", errors, "standard error")
    for name, (read, text) in FACTS.items():
        add(name, [[read(limit) for limit in row] for row in limits], text)
    on_branch = [
        [name not in BRANCHES or matches_branch(name, limit.branch) for limit in row]
        for name, row in zip(initial, limits, strict=True)
    ]
    add("on_branch", on_branch, "true if the limit is on the branch of the start")
    return dataset


def _name_starts(starts: Starts) -> Mapping[str, str | PrescribedStart]:
    """Starts by name; names of initializations are checked."""
    if isinstance(starts, Mapping):
        return starts
    named = [(start_name(start), start) for start in starts]
    prescribed = [name for name, start in named if not isinstance(start, str)]
    validation.distinct_choices("start", [name for name, _ in named], [*INITIALIZERS, *prescribed])
    return dict(named)


def training_starts(model: Model, names: Sequence[str], d: int) -> dict[str, str | PrescribedStart]:
    """The starts of `dotphase.train` at dimension d, for descents in the limit.

    The positional start of `train` is a unit vector: its m is smaller by sqrt d than in the limit.

    Examples
    --------
    >>> model = dp.positional_semantic()
    >>> sorted(dp.analysis.training_starts(model, ["semantic", "positional"], d=1000))
    ['positional', 'semantic']
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
    steps: int | None,
    lr: float | None,
    settings: DynamicsSettings,
) -> DescentLimit:
    """Compute one descent and its limit."""

    def run(size: float, count: int) -> Trajectory:
        return dynamics(model, alpha, start, steps=count, lr=size, settings=settings)

    size, count = MAX_LR if lr is None else lr, FIRST_STEPS if steps is None else steps
    path = run(size, count)
    for _ in range(MAX_HALVINGS if lr is None else 0):
        if not steps_too_large(path):
            break
        size /= 2
        path = run(size, count)
    if steps is not None:
        last = {name: float(getattr(path, name)[-1]) for name in QUANTITIES}
        return DescentLimit(path, last, _last_errors(path), not path.diverged)
    while True:
        limit = _extrapolate(path)
        count = 2 * count + 1
        if limit.settled or not limit.trusted or count > MAX_STEPS:
            return limit
        path = run(size, count)


def steps_too_large(path: Trajectory) -> bool:
    """True if the descent diverges, or if its loss rises without momentum."""
    loss = path.train_loss
    rises = path.momentum == 0 and bool(np.any(np.diff(loss) > MAX_RISE * loss[1:]))
    return path.diverged or rises or not np.isfinite(loss).all()


def _last_errors(path: Trajectory) -> dict[str, float]:
    return {name: float(path.stderr[name][-1]) for name in QUANTITIES}


def _extrapolate(path: Trajectory) -> DescentLimit:
    """Extrapolate a descent from its values at times T/4, T/2 and T.

    Let r < 1 be the ratio of the change from T/2 to T and that from T/4 to T/2. If the distance
    from the limit decays exponentially or as a power of time, the change after T is at most
    r/(1 - r) times the last one. All of that is part of the error.
    """
    last = len(path.steps) - 1
    values, errors, settled = {}, _last_errors(path), not path.diverged
    for name in QUANTITIES:
        early, middle, late = getattr(path, name)[[last // 4, last // 2, last]]
        values[name], error = extrapolate(early, middle, late)
        settled &= bool(error <= max(SETTLED * abs(late), 2 * errors[name], 1e-9))
        errors[name] = float(np.hypot(errors[name], error))
    return DescentLimit(path, values, errors, settled)


def extrapolate(early: float, middle: float, late: float) -> tuple[float, float]:
    """Limit of a sequence from three values, with time doubling in between, and its error."""
    first, second = middle - early, late - middle
    if not np.isfinite([first, second]).all():
        return float(late), float("nan")
    ratio = abs(second) / max(abs(first), np.finfo(float).tiny)
    if ratio >= MAX_RATIO or first * second <= 0:
        return float(late), float(abs(second))
    remaining = second * ratio / (1 - ratio)
    return float(late + remaining), float(abs(remaining))
