"""Solving with one step of replica symmetry breaking, and what it changes.

The branch is followed in the Parisi parameter y, from almost zero, where it is the
replica-symmetric solution, to where ``dF/dy = 0``: the complexity is zero there and F, at its
maximum, the lowest training loss. All of it lies on the same points, so that differences to the
replica-symmetric end are far more precise than values. Results are therefore a replica-symmetric
solution on many points plus a difference on few; that of the training loss is the integral of
dF/dy.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.interpolate import PchipInterpolator

from dotphase._numerics.fixed_point import Iteration
from dotphase._numerics.shown import with_error
from dotphase.theory.breaking_evolution import BrokenOverlaps
from dotphase.theory.breaking_problem import Clustered, broken_norms, enough_inside
from dotphase.theory.classification import belongs, classify
from dotphase.theory.overlaps import is_nothing
from dotphase.theory.problem import Free, Vector
from dotphase.theory.search import (
    Evaluation,
    Jacobian,
    Memory,
    Search,
    differentiate,
    iterate,
    refine_or_iterate,
)
from dotphase.theory.settings import SolverSettings
from dotphase.theory.solution import Solution
from dotphase.theory.steps import Steps
from dotphase.theory.uncertainty import standard_error

#: The first Parisi parameters, in units of one over the mean of M. The first stands for zero.
FIRST = (1e-3, 1 / 16, 1 / 4, 1.0)
#: Factor between those that follow while F rises, and the last one tried.
FACTOR, LAST = 2.0, 64.0
#: log2 of the outer points on which the path begins, and of those on which it is followed.
FEW, PATH = 13, 14
#: Relative residual at which a node is found.
TOLERANCE = 3e-4
#: Evaluations after which the derivatives are measured again.
PATIENCE = 5
#: Share of W below which clusters are points.
CLOSED = 1e-4
#: Shares of the replica-symmetric W with which the clusters may start; the first admissible one
#: counts.
OPEN = (0.2, 0.05, 0.01, 1e-3, 1e-4)
#: Relative error of y above which F is called flat.
FLAT = 0.3

Samples = Float[np.ndarray, " scrambles"]


@dataclass(frozen=True, eq=False)
class Node:
    """A fixed point at one Parisi parameter.

    Attributes
    ----------
    problem, x : what is solved, and its solution
    jacobian : derivatives of the map, as measured on fewer points
    norms, test_error, slope : results there; slope is dF/dy
    samples : what each scramble alone would give for them
    """

    problem: Clustered
    x: Vector
    jacobian: Jacobian
    norms: dict[str, float]
    test_error: float
    slope: float
    samples: dict[str, Samples]

    @classmethod
    def at(cls, here: Evaluation, jacobian: Jacobian) -> Node:
        """From the averages at the fixed point; that of each scramble is a Newton step away."""
        problem: Any = here.problem
        slopes = np.zeros(here.x.size)
        slopes[jacobian.free] = jacobian.test
        test_errors = problem.test_error(here.answer.averages)

        def results(step: Vector, test_error: float) -> dict[str, float]:
            return problem.norms(here.x + step) | {
                "test_error": test_error + float(step @ slopes),
                "slope": float(here.image[-1] + step[-1]) / problem.unit**2,
            }

        found = results(np.zeros_like(here.x), here.test_error)
        steps = jacobian.newton(here.images - here.image)
        each = [results(*one) for one in zip(steps, test_errors, strict=True)]
        samples = {name: np.asarray([one[name] for one in each]) for name in found}
        slope, test_error = found.pop("slope"), found.pop("test_error")
        return cls(problem, here.x, jacobian, found, test_error, slope, samples)

    @property
    def y(self) -> float:
        """Its Parisi parameter."""
        return self.problem.parisi

    @property
    def overlaps(self) -> BrokenOverlaps:
        """The overlaps there."""
        return self.problem.overlaps(self.x)


class Path:
    """The nodes of a branch in the order of y, and F between them."""

    def __init__(self, nodes: list[Node], unit: float) -> None:
        self.nodes = sorted(nodes, key=lambda node: node.y)
        self.y = np.asarray([node.y for node in self.nodes])
        #: Small and large y are of the same weight on this scale, and zero is on it.
        self._scale = np.log1p(self.y / (FIRST[1] * unit))
        self._unit = FIRST[1] * unit

    def _curve(self, slopes: Float[np.ndarray, " nodes"]) -> PchipInterpolator:
        """``dF/dy dy/ds`` on the scale s."""
        return PchipInterpolator(self._scale, slopes * (self.y + self._unit))

    @property
    def slope(self) -> Float[np.ndarray, " nodes"]:
        """dF/dy, over all scrambles."""
        return np.asarray([node.slope for node in self.nodes])

    @property
    def slopes(self) -> Float[np.ndarray, "scrambles nodes"]:
        """dF/dy from each scramble."""
        return np.stack([node.samples["slope"] for node in self.nodes], axis=1)

    def gain(self, slopes: Float[np.ndarray, " nodes"]) -> Float[np.ndarray, " nodes"]:
        """F at the nodes, less its replica-symmetric value at y = 0."""
        curve = self._curve(slopes).antiderivative()
        return np.asarray(curve(self._scale) - curve(0.0))

    def gain_at(self, y: float, slopes: Float[np.ndarray, " nodes"]) -> float:
        """The same anywhere on the path."""
        curve = self._curve(slopes).antiderivative()
        return float(curve(math.log1p(y / self._unit)) - curve(0.0))

    def top(self) -> tuple[float, float]:
        """Where dF/dy = 0, and d2F/dy2 there; NaN if F still rises at the last node."""
        curve = self._curve(self.slope)
        roots = curve.roots(extrapolate=False)
        roots = roots[np.isfinite(roots) & (roots > self._scale[0])]
        if not roots.size:
            return math.nan, math.nan
        y = float(np.expm1(roots[0]) * self._unit)
        return y, float(curve(roots[0], 1)) / (y + self._unit) ** 2


@dataclass(frozen=True)
class Complexity:
    """Minima of a branch counted: the complexity along the Parisi parameter.

    Attributes
    ----------
    model, alpha, branch : of what
    parisi : values of y
    complexity : ``y^2 dF/dy``, the log per dimension of how many minima there are
    energy : their training loss, ``d(y F)/dy``
    free_energy : F(y); its maximum is the lowest training loss
    stderr : of the complexity and of F less its value at y = 0
    norms : sizes of the overlaps of token 1 along y

    Examples
    --------
    >>> curve = dp.analysis.complexity(
    ...     dp.positional_semantic(omega=0.1), 0.75, "positional", inner=9, log2_points=12
    ... )
    >>> bool(curve.complexity[1] > 0)
    True
    """

    model: Any = field(repr=False)
    alpha: float
    branch: str
    parisi: Float[np.ndarray, " nodes"]
    complexity: Float[np.ndarray, " nodes"]
    energy: Float[np.ndarray, " nodes"]
    free_energy: Float[np.ndarray, " nodes"]
    stderr: dict[str, Float[np.ndarray, " nodes"]]
    norms: dict[str, Float[np.ndarray, " nodes"]]


def _curve_of(symmetric: Solution, path: Path) -> Complexity:
    slope, gains = path.slope, np.stack([path.gain(each) for each in path.slopes])
    free = symmetric.free_energy + path.gain(slope)
    names = path.nodes[0].norms
    return Complexity(
        model=symmetric.model,
        alpha=symmetric.alpha,
        branch=symmetric.branch,
        parisi=path.y,
        complexity=path.y**2 * slope,
        energy=free + path.y * slope,
        free_energy=free,
        stderr={
            "complexity": _errors(path.y**2 * path.slopes),
            "free_energy": _errors(gains),
        },
        norms={name: np.asarray([node.norms[name] for node in path.nodes]) for name in names},
    )


def _errors(samples: Float[np.ndarray, "scrambles nodes"]) -> Float[np.ndarray, " nodes"]:
    return np.asarray([standard_error(column) for column in samples.T])


@dataclass(frozen=True)
class Broken:
    """One fixed point with one step of replica symmetry breaking.

    Attributes
    ----------
    symmetric : the replica-symmetric solution it belongs to
    overlaps : order parameters per token
    parisi : y where dF/dy = 0; NaN where there are no clusters, or F still rises
    parisi_range : between which values F differs from its maximum by less than its error
    complexity : at y; zero within its error if y was found
    train_loss, test_error : of the lowest minima
    shift : what breaking changes: results less the replica-symmetric ones, on common points
    stderr : standard errors of the overlaps, the results and y
    shift_stderr : of the shifts alone
    curve : the complexity on the way; None where there are no clusters
    converged : whether all of it was found
    message : what was found
    log2_points, inner : outer points (log2), and inner points for each of them
    iterations, seconds : evaluations of the map, and wall time

    Examples
    --------
    >>> model = dp.positional_semantic(omega=0.1)
    >>> broken = dp.solve(model, 0.75, "positional", breaking=1, inner=9, log2_points=12)
    >>> broken.train_loss > broken.symmetric.train_loss
    True
    """

    symmetric: Solution = field(repr=False)
    overlaps: BrokenOverlaps
    parisi: float
    parisi_range: tuple[float, float]
    complexity: float
    train_loss: float
    test_error: float
    shift: dict[str, float]
    stderr: dict[str, float]
    shift_stderr: dict[str, float]
    curve: Complexity | None = field(repr=False)
    converged: bool
    message: str
    log2_points: int
    inner: int
    iterations: int
    seconds: float

    @property
    def there(self) -> bool:
        """Whether the branch asked for was found and the solver converged on it."""
        return self.converged and self.symmetric.there

    @property
    def norms(self) -> dict[str, float]:
        """Sizes of the overlaps of token 1."""
        return broken_norms(self.overlaps)

    def to_dict(self) -> dict[str, Any]:
        """The solution as plain numbers, lists and strings, ready for JSON."""
        parts = {name: np.asarray(part).tolist() for name, part in self.overlaps._asdict().items()}
        parts.pop("parisi")
        own = ("overlaps", "symmetric", "curve")
        shown = {name: value for name, value in vars(self).items() if name not in own}
        symmetric = self.symmetric.to_dict()
        return {
            **{name: symmetric[name] for name in ("alpha", "branch", "found")},
            **shown,
            "parisi": self.parisi if math.isfinite(self.parisi) else None,
            "parisi_range": list(self.parisi_range),
            "overlaps": parts,
            "norms": self.norms,
            "model_error": {name: abs(self.shift[name]) for name in MODEL_ERRORS},
            "symmetric": symmetric,
        }

    def __str__(self) -> str:
        asked = self.symmetric
        lines = [f"{asked.found} branch at alpha = {asked.alpha:g}, one step of breaking"]
        if not self.converged:
            lines = [f"NO RESULT for the {asked.branch} branch at alpha = {asked.alpha:g}"]
        labels = {"train_loss": "training loss", "test_error": "test error", "parisi": "y"}
        results = {
            **self.norms,
            "train_loss": self.train_loss,
            "test_error": self.test_error,
            "parisi": self.parisi,
            "complexity": self.complexity,
        }
        for name, value in results.items():
            note = ""
            if name in self.shift:
                moved = with_error(self.shift[name], self.shift_stderr[name])
                note = f"   from replica symmetry {moved}"
            shown = with_error(value, self.stderr[name]) if math.isfinite(value) else "none"
            lines.append(f"  {labels.get(name, name):<13} {shown}{note}")
        state = "converged" if self.converged else "NOT CONVERGED"
        lines.append(
            f"  {state}: {self.message}; {self.iterations} iterations, "
            f"2^{self.log2_points} points with {self.inner} inner ones each"
        )
        return "\n".join(lines)


#: Results whose shift is the error of the replica-symmetric model.
MODEL_ERRORS = ("train_loss", "test_error", "theta", "m")


def breaking(
    solving: Steps[Solution], settings: SolverSettings, inner: int | None = None
) -> Steps[Broken]:
    """One step of breaking from a replica-symmetric solution, both in steps.

    Parameters
    ----------
    inner : int, optional
        Most inner points to use; as many as the model needs by default.
    """
    began = time.perf_counter()
    symmetric = yield from solving
    if not symmetric.there or is_nothing(symmetric.overlaps, symmetric.model):
        why = symmetric.message if not symmetric.there else "the student is zero"
        return _unbroken(symmetric, symmetric.there, why, 0, 0, began)
    walk = _Walk(symmetric, settings, inner)
    inside = walk.problem.points_inside
    arrived = yield from walk.to_top()
    if not arrived:
        return _unbroken(symmetric, False, walk.failure, inside, walk.count, began)
    if walk.closed:
        message = "replica symmetric: the clusters of minima are points"
        return _unbroken(symmetric, True, message, inside, walk.count, began)
    return _dress(symmetric, walk, began)


def counting(
    solving: Steps[Solution],
    settings: SolverSettings,
    parisi: Sequence[float] | None = None,
    inner: int | None = None,
) -> Steps[Complexity | None]:
    """The complexity along y in steps; None where there is no branch, or no clusters."""
    symmetric = yield from solving
    if not symmetric.there or is_nothing(symmetric.overlaps, symmetric.model):
        return None
    walk = _Walk(symmetric, settings, inner)
    arrived = yield from walk.to_top()
    if not arrived or walk.closed:
        return None
    asked = [walk.nodes[-1].y * factor for factor in (2.0, 4.0)] if parisi is None else parisi
    for y in sorted(asked):
        if not (yield from walk.to(y)):
            break
    return _curve_of(symmetric, walk.path)


class _Walk:
    """A branch on its way along y."""

    def __init__(self, symmetric: Solution, settings: SolverSettings, inner: int | None) -> None:
        model, alpha, overlaps = symmetric.model, symmetric.alpha, symmetric.overlaps
        self.symmetric = symmetric
        loose = settings.iteration or Iteration(tolerance=TOLERANCE, floor=20 * TOLERANCE)
        self.settings = replace(settings, iteration=loose)
        self.unit = 1 / symmetric.loss_slope
        free = Free.started(model, alpha, overlaps)
        self.problem = Clustered(
            model,
            alpha,
            free.coordinates,
            free.held,
            parisi=FIRST[0] * self.unit,
            unit=self.unit,
            inner=inner or enough_inside(model),
        )
        self.level = settings.log2_points or PATH
        self.memory = Memory()
        self.nodes: list[Node] = []
        self.count = 0
        self.failure = ""
        q, m, V, theta = overlaps
        y = np.asarray(self.unit)
        starts = [BrokenOverlaps((1 - share) * q, q, m, V, theta, y) for share in OPEN]
        packed = [self.problem.pack(start) for start in starts]
        self.x = next((x for x in packed if self.problem.admissible(x)), packed[-1])

    @property
    def path(self) -> Path:
        """What has been found."""
        return Path(self.nodes, self.unit)

    @property
    def last(self) -> Node:
        """The node with the largest y."""
        return max(self.nodes, key=lambda node: node.y)

    @property
    def rising(self) -> bool:
        """Whether F still rises at the largest y."""
        return self.last.slope > 0

    @property
    def closed(self) -> bool:
        """Whether the clusters of the last node are points."""
        overlaps = self.nodes[-1].overlaps
        own = np.trace(overlaps.q1[0] - overlaps.q0[0])
        return bool(own < CLOSED * np.trace(overlaps.q1[0]))

    def to_top(self) -> Steps[bool]:
        """From y = 0 to where F has its maximum, or as far as F rises; whether that succeeded.

        Stops at once where the clusters are points.
        """
        for factor in FIRST:
            if not (yield from self.to(factor * self.unit)):
                return False
            if self.closed:
                return True
        while self.rising and self.last.y < LAST * self.unit:
            if not (yield from self.to(FACTOR * self.last.y)):
                return False
        if self.rising:
            return True
        return (yield from self.to(self.path.top()[0]))

    def to(self, y: float) -> Steps[bool]:
        """Go to another y, from the node next to it; whether that succeeded."""
        search = Search(replace(self.problem, parisi=y), self.settings, self.memory)
        x, jacobian = self.x, None
        if self.nodes:
            near = min(self.nodes, key=lambda node: abs(math.log(node.y / y)))
            x, jacobian = near.x, near.jacobian
        node = yield from self._settle(search, x, jacobian)
        if node is not None:
            self.nodes.append(node)
        return node is not None

    def _settle(self, search: Search, x: Vector, jacobian: Jacobian | None) -> Steps[Node | None]:
        """The node next to x, if there is one and it is still on the branch."""
        model, branch, level = self.symmetric.model, self.symmetric.branch, self.level
        problem: Any = search.problem
        where = f"y = {problem.parisi:.4g}"
        if jacobian is None:
            few = min(FEW, level)
            rough = yield from iterate(search, x, few, self.settings.iteration_on(few))
            x = rough.x
            jacobian = yield from differentiate(search, x, few)
        point, jacobian = yield from refine_or_iterate(search, x, level, jacobian)
        if jacobian is None or search.count > PATIENCE:
            # That of the neighbour is out of date.
            jacobian = yield from differentiate(search, point.x, min(FEW, level))
        here = yield from search.evaluate(point.x, level)
        self.count += search.count
        if not point.outcome.success:
            self.failure = f"no fixed point at {where}: {point.outcome.message}"
        elif not belongs(branch, classify(model, problem.overlaps(point.x).within)):
            self.failure = f"the {branch} branch is lost at {where}"
        elif jacobian is None:
            self.failure = f"no derivatives at {where}"
        else:
            return Node.at(here, jacobian)
        return None


def _dress(symmetric: Solution, walk: _Walk, began: float) -> Broken:
    """The result from a path whose last node is the top of F, or as far as it went."""
    path, found = walk.path, not walk.rising
    first, top = path.nodes[0], walk.nodes[-1]
    parisi, parisi_error = math.nan, math.nan
    if found:
        parisi, curvature = path.top()
        parisi_error = abs(standard_error(top.samples["slope"] / curvature))

    gain = path.gain_at(top.y, path.slope)
    gains = np.asarray([path.gain_at(top.y, slopes) for slopes in path.slopes])
    moved = {
        _RESULT.get(name, name): top.samples[name] - first.samples[name]
        for name in (*_SHIFTED, "test_error")
    }
    moved["train_loss"] = gains
    shift_stderr = {name: standard_error(values) for name, values in moved.items()}
    shift = {_RESULT.get(name, name): top.norms[name] - first.norms[name] for name in _SHIFTED}
    shift |= {"test_error": top.test_error - first.test_error, "train_loss": gain}
    errors = {name: math.hypot(symmetric.stderr[name], shift_stderr[name]) for name in shift}
    q = errors.pop("q")
    within = math.hypot(q, standard_error(top.samples["q0"] - top.samples["q1"]))
    errors |= {"q0": within, "q1": q, "parisi": parisi_error}
    errors["complexity"] = standard_error(top.y**2 * top.samples["slope"])
    complexity = 0.0 if found else float(top.y**2 * path.slope[-1])

    low, high = _flat_range(path, top.y, gain, shift_stderr["train_loss"])
    message = "dF/dy = 0"
    if not found:
        message = f"F still rises at y = {top.y:.4g}; flat within its error from y = {low:.4g} on"
    elif parisi_error > FLAT * parisi:
        message += f", but F is flat within its error from y = {low:.4g} to {high:.4g}"
    return Broken(
        symmetric=symmetric,
        overlaps=_shifted(symmetric, first.overlaps, top.overlaps, parisi),
        parisi=parisi,
        parisi_range=(low, high),
        complexity=complexity,
        train_loss=symmetric.free_energy + gain,
        test_error=symmetric.test_error + shift["test_error"],
        shift=shift,
        stderr=errors,
        shift_stderr=shift_stderr,
        curve=_curve_of(symmetric, path),
        converged=True,
        message=message,
        log2_points=walk.level,
        inner=walk.problem.points_inside,
        iterations=walk.count,
        seconds=time.perf_counter() - began,
    )


#: Overlaps that are there without breaking, and what they are called then.
_SHIFTED = ("q1", "m", "V", "theta")
_RESULT = {"q1": "q"}


def _flat_range(path: Path, top: float, gain: float, error: float) -> tuple[float, float]:
    """Between which y, on both sides of the top, F is as high as there, within an error."""
    grid = np.geomspace(path.y[0], path.y[-1], 200)
    high = np.asarray([path.gain_at(float(y), path.slope) for y in grid]) >= gain - error
    low = high | (grid > top)
    up = high | (grid < top)
    first = grid[np.flatnonzero(~low)[-1] + 1] if not np.all(low) else grid[0]
    last = grid[np.flatnonzero(~up)[0] - 1] if not np.all(up) else grid[-1]
    return float(min(first, top)), float(max(last, top))


def _shifted(
    symmetric: Solution, first: BrokenOverlaps, top: BrokenOverlaps, parisi: float
) -> BrokenOverlaps:
    """The replica-symmetric overlaps, moved by what breaking has changed on common points."""
    plain = symmetric.overlaps
    q1 = plain.q + top.q1 - first.q1
    return BrokenOverlaps(
        q0=q1 - (top.q1 - top.q0),
        q1=q1,
        m=plain.m + top.m - first.m,
        V=plain.V + top.V - first.V,
        theta=plain.theta + top.theta - first.theta,
        parisi=np.asarray(parisi),
    )


def _unbroken(
    symmetric: Solution, converged: bool, message: str, inner: int, count: int, began: float
) -> Broken:
    """A result without clusters: nothing is broken, or nothing was found."""
    q, m, V, theta = symmetric.overlaps
    nothing = 0.0 if converged else math.nan
    names = ("q", "m", "V", "theta", "test_error", "train_loss")
    errors = {name: symmetric.stderr[name] for name in names}
    spread = errors.pop("q")
    return Broken(
        symmetric=symmetric,
        overlaps=BrokenOverlaps(q, q, m, V, theta, np.asarray(math.nan)),
        parisi=math.nan,
        parisi_range=(0.0, math.inf),
        complexity=nothing,
        train_loss=symmetric.train_loss,
        test_error=symmetric.test_error,
        shift=dict.fromkeys(names, nothing),
        stderr={"q0": spread, "q1": spread, **errors, "parisi": math.nan, "complexity": nothing},
        shift_stderr=dict.fromkeys(names, nothing),
        curve=None,
        converged=converged,
        message=message,
        log2_points=symmetric.log2_points,
        inner=inner,
        iterations=count,
        seconds=time.perf_counter() - began,
    )
