"""Follow a branch in the Parisi parameter y, from almost zero to the maximum of F."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from dotphase.numerics.fixed_point import Iteration
from dotphase.theory.classification import classify, matches_branch
from dotphase.theory.fixed_point_map import StateEvolutionMap
from dotphase.theory.one_rsb.fixed_point_map import OneRSBMap, default_inner_points
from dotphase.theory.one_rsb.parisi_path import FIRST, Node, Path
from dotphase.theory.one_rsb.state_evolution import BrokenOverlaps
from dotphase.theory.parameter_continuation import ParameterContinuation
from dotphase.theory.point_evaluator import PointEvaluator, ProxWarmStart
from dotphase.theory.settings import SolverSettings
from dotphase.theory.solution import Solution

#: Factor between Parisi parameters while F rises, and the largest one, in units of 1/<M>.
FACTOR, LAST = 2.0, 64.0
#: log2 of the outer points for the first node and its derivatives, and for all nodes.
FEW, PATH = 13, 14
#: Relative residual of a node.
TOLERANCE = 3e-4
#: Share of W below which clusters count as points: at y = 0, where they are largest, and elsewhere.
SMALL, CLOSED = 0.01, 1e-4
#: Initial shares of W inside clusters; the first admissible one is used.
OPEN = (0.2, 0.05, 0.01, 1e-3, 1e-4)


class ParisiContinuation:
    """A branch followed in the Parisi parameter y.

    Attributes
    ----------
    nodes : fixed points so far
    failure : why the last step failed
    closed : whether the clusters are points
    """

    def __init__(self, symmetric: Solution, settings: SolverSettings, inner: int | None) -> None:
        model, alpha, overlaps = symmetric.model, symmetric.alpha, symmetric.overlaps
        self.symmetric = symmetric
        loose = settings.iteration or Iteration(tolerance=TOLERANCE, floor=20 * TOLERANCE)
        self.settings = replace(settings, iteration=loose)
        self.unit = 1 / symmetric.loss_slope
        symmetric_map = StateEvolutionMap.from_initial(model, alpha, overlaps)
        self.map = OneRSBMap(
            model,
            alpha,
            symmetric_map.coordinates,
            symmetric_map.fixed,
            parisi=FIRST[0] * self.unit,
            unit=self.unit,
            inner=inner or default_inner_points(model),
        )
        self.log2_points = settings.log2_points or PATH
        self._continuation = ParameterContinuation(
            lambda log_y: replace(self.map, parisi=math.exp(log_y)),
            self.settings,
            self.log2_points,
            FEW,
        )
        self.nodes: list[Node] = []
        self._probes = 0
        self.failure = ""
        self.closed = False
        q, m, V, theta = overlaps
        y = np.asarray(self.unit)
        starts = [BrokenOverlaps((1 - share) * q, q, m, V, theta, y) for share in OPEN]
        packed = [self.map.pack(start) for start in starts]
        # Clusters of several sizes in the replica-symmetric solution.
        self._initial = [x for x in packed if self.map.admissible(x)] or packed[-1:]

    @property
    def count(self) -> int:
        """Evaluations so far."""
        return self._probes + self._continuation.n_evaluations

    @property
    def path(self) -> Path:
        """The nodes in the order of y."""
        return Path(self.nodes, self.unit)

    @property
    def last(self) -> Node:
        """The node with the largest y."""
        return max(self.nodes, key=lambda node: node.y)

    @property
    def rising(self) -> bool:
        """True if F still rises at the largest y."""
        return self.last.slope > 0

    def to_top(self) -> bool:
        """Follow the branch from y = 0 to the maximum of F; whether that succeeded.

        Stops where F still rises at the largest y, and at once where the clusters are points.
        """
        self.closed = not self._has_clusters()
        if self.closed:
            return True
        for factor in FIRST:
            if not self.step_to(factor * self.unit):
                return False
            self.closed = _cluster_share(self.nodes[-1].overlaps) < CLOSED
            if self.closed:
                return True
        while self.rising and self.last.y < LAST * self.unit:
            if not self.step_to(FACTOR * self.last.y):
                return False
        if self.rising:
            return True
        return self.step_to(self.path.top()[0])

    def _has_clusters(self) -> bool:
        """True if clusters of some size exist at y = 0.

        No clusters exist if one step shrinks every trial size: all else is replica symmetric.
        """
        evaluator = PointEvaluator(self.map, self.settings, ProxWarmStart())
        for x in self._initial:
            share = _cluster_share(self.map.overlaps(x))
            if share < SMALL / 2:
                break
            point = evaluator.evaluate(x, min(FEW, self.log2_points))
            self._probes += 1
            if not _cluster_share(self.map.overlaps(point.image)) < share:
                return True
        return False

    def step_to(self, y: float) -> bool:
        """Solve at another y, from the nearest node; whether that succeeded."""
        point = self._continuation.solve_at(math.log(y), self._initial[0])
        model, branch, position = self.symmetric.model, self.symmetric.branch, f"y = {y:.4g}"
        outcome = point.fixed_point.outcome
        if not outcome.success:
            self.failure = f"no fixed point at {position}: {outcome.message}"
        elif not matches_branch(branch, classify(model, point.evaluated.overlaps.within)):
            self.failure = f"the {branch} branch is lost at {position}"
        elif point.jacobian is None:
            self.failure = f"no derivatives at {position}"
        else:
            self.nodes.append(Node.at(point.evaluated, point.jacobian))
            return True
        return False


def _cluster_share(overlaps: BrokenOverlaps) -> float:
    """Share of W that lies inside clusters."""
    return float(np.trace(overlaps.q1[0] - overlaps.q0[0]) / np.trace(overlaps.q1[0]))
