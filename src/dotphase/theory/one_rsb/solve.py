"""Solve with one step of replica symmetry breaking, and measure its effect.

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

import numpy as np

from dotphase.theory.one_rsb.parisi_continuation import ParisiContinuation
from dotphase.theory.one_rsb.parisi_path import Path
from dotphase.theory.one_rsb.result import Broken, Complexity, complexity_of
from dotphase.theory.one_rsb.state_evolution import BrokenOverlaps
from dotphase.theory.overlaps import is_zero
from dotphase.theory.quadrature_error import standard_error
from dotphase.theory.settings import SolverSettings
from dotphase.theory.solution import Solution

#: Relative error of y above which F is called flat.
FLAT = 0.3
#: Overlaps that are there without breaking, and what they are called then.
_SHIFTED = ("q1", "m", "V", "theta")
_RESULT = {"q1": "q"}


def break_symmetry(
    symmetric: Solution, settings: SolverSettings, inner: int | None = None
) -> Broken:
    """Break the symmetry of a replica-symmetric solution in one step.

    Parameters
    ----------
    inner : int, optional
        Largest number of inner points; by default as many as the model needs.
    """
    start_time = time.perf_counter()
    if not symmetric.on_branch or is_zero(symmetric.overlaps, symmetric.model):
        why = symmetric.message if not symmetric.on_branch else "the student is zero"
        return _unbroken(symmetric, symmetric.on_branch, why, 0, 0, start_time)
    walk = ParisiContinuation(symmetric, settings, inner)
    inside = walk.map.points_inside
    if not walk.to_top():
        return _unbroken(symmetric, False, walk.failure, inside, walk.count, start_time)
    if walk.closed:
        message = "replica symmetric: clusters of minima have less than 1% of W"
        return _unbroken(symmetric, True, message, inside, walk.count, start_time)
    return _result(symmetric, walk, start_time)


def count_minima(
    symmetric: Solution,
    settings: SolverSettings,
    parisi: Sequence[float] | None = None,
    inner: int | None = None,
) -> Complexity | None:
    """The complexity along y; None where there is no branch, or no clusters."""
    if not symmetric.on_branch or is_zero(symmetric.overlaps, symmetric.model):
        return None
    walk = ParisiContinuation(symmetric, settings, inner)
    if not walk.to_top() or walk.closed:
        return None
    if parisi is None:
        parisi = [walk.nodes[-1].y * factor for factor in (2.0, 4.0)]
    for y in sorted(parisi):
        if not walk.step_to(y):
            break
    return complexity_of(symmetric, walk.path)


def _result(symmetric: Solution, walk: ParisiContinuation, start_time: float) -> Broken:
    """The result from a path whose last node is the maximum of F, or the largest y."""
    path, has_maximum = walk.path, not walk.rising
    first, top = path.nodes[0], walk.nodes[-1]
    parisi, parisi_error = math.nan, math.nan
    if has_maximum:
        parisi, curvature = path.top()
        parisi_error = abs(standard_error(top.samples["slope"] / curvature))

    gain = float(path.gain_at(np.asarray(top.y)))
    changes = {
        _RESULT.get(name, name): top.samples[name] - first.samples[name]
        for name in (*_SHIFTED, "test_error")
    }
    shift_stderr = {name: standard_error(values) for name, values in changes.items()}
    shift_stderr["train_loss"] = float(path.gain_stderr[path.nodes.index(top)])
    shift = {_RESULT.get(name, name): top.norms[name] - first.norms[name] for name in _SHIFTED}
    shift |= {"test_error": top.test_error - first.test_error, "train_loss": gain}
    errors = {name: math.hypot(symmetric.stderr[name], shift_stderr[name]) for name in shift}
    q = errors.pop("q")
    within = math.hypot(q, standard_error(top.samples["q0"] - top.samples["q1"]))
    errors |= {"q0": within, "q1": q, "parisi": parisi_error}
    errors["complexity"] = standard_error(top.y**2 * top.samples["slope"])
    complexity = 0.0 if has_maximum else float(top.y**2 * path.slope[-1])

    low, high = _flat_range(path, top.y, gain, shift_stderr["train_loss"])
    message = "dF/dy = 0"
    if not has_maximum:
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
        curve=complexity_of(symmetric, path),
        converged=True,
        message=message,
        log2_points=walk.log2_points,
        inner=walk.map.points_inside,
        iterations=walk.count,
        seconds=time.perf_counter() - start_time,
    )


def _flat_range(path: Path, top: float, gain: float, error: float) -> tuple[float, float]:
    """The range of y around the maximum where F is as high within its error."""
    grid = np.geomspace(path.y[0], path.y[-1], 200)
    high = path.gain_at(grid) >= gain - error
    low = high | (grid > top)
    up = high | (grid < top)
    first = grid[np.flatnonzero(~low)[-1] + 1] if not np.all(low) else grid[0]
    last = grid[np.flatnonzero(~up)[0] - 1] if not np.all(up) else grid[-1]
    return float(min(first, top)), float(max(last, top))


def _shifted(
    symmetric: Solution, first: BrokenOverlaps, top: BrokenOverlaps, parisi: float
) -> BrokenOverlaps:
    """The replica-symmetric overlaps plus the change by breaking on common points."""
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
    symmetric: Solution, converged: bool, message: str, inner: int, count: int, start_time: float
) -> Broken:
    """A result without clusters: the symmetry is not broken, or there is no solution."""
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
        seconds=time.perf_counter() - start_time,
    )
