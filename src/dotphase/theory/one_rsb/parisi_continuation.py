"""The way of a branch along the Parisi parameter y, from almost zero to the top of F."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from dotphase.numerics.fixed_point import Iteration, Vector
from dotphase.theory.classification import belongs, classify
from dotphase.theory.driver import Steps
from dotphase.theory.fixed_point_map import Free
from dotphase.theory.one_rsb.fixed_point_map import Clustered, enough_inside
from dotphase.theory.one_rsb.parisi_path import FIRST, Node, Path
from dotphase.theory.one_rsb.state_evolution import BrokenOverlaps
from dotphase.theory.point_iteration import (
    Jacobian,
    Memory,
    Search,
    differentiate,
    iterate,
    refine_or_iterate,
)
from dotphase.theory.settings import SolverSettings
from dotphase.theory.solution import Solution

#: Factor between those that follow while F rises, and the last one tried.
FACTOR, LAST = 2.0, 64.0
#: log2 of the outer points on which the path begins, and of those on which it is followed.
FEW, PATH = 13, 14
#: Relative residual at which a node is found.
TOLERANCE = 3e-4
#: Evaluations after which the derivatives are measured again.
PATIENCE = 5
#: Share of W below which clusters are points; at y = 0, where they are largest, and anywhere.
SMALL, CLOSED = 0.01, 1e-4
#: Shares of the replica-symmetric W with which the clusters may start; the first admissible one
#: counts.
OPEN = (0.2, 0.05, 0.01, 1e-3, 1e-4)


class Walk:
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
        #: Whether the clusters are points.
        self.closed = False
        q, m, V, theta = overlaps
        y = np.asarray(self.unit)
        starts = [BrokenOverlaps((1 - share) * q, q, m, V, theta, y) for share in OPEN]
        packed = [self.problem.pack(start) for start in starts]
        #: Clusters of several sizes in the replica-symmetric solution.
        self.starts = [x for x in packed if self.problem.admissible(x)] or packed[-1:]

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

    def to_top(self) -> Steps[bool]:
        """From y = 0 to where F has its maximum, or as far as F rises; whether that succeeded.

        Stops at once where the clusters are points.
        """
        self.closed = not (yield from self._opens())
        if self.closed:
            return True
        for factor in FIRST:
            if not (yield from self.to(factor * self.unit)):
                return False
            self.closed = _share(self.nodes[-1].overlaps) < CLOSED
            if self.closed:
                return True
        while self.rising and self.last.y < LAST * self.unit:
            if not (yield from self.to(FACTOR * self.last.y)):
                return False
        if self.rising:
            return True
        return (yield from self.to(self.path.top()[0]))

    def _opens(self) -> Steps[bool]:
        """Whether there are clusters of some size at y = 0.

        All else is replica symmetric there, and the map takes the size of clusters to another
        size: they are smaller than all those that it makes smaller.
        """
        search = Search(self.problem, self.settings, Memory())
        for x in self.starts:
            share = _share(self.problem.overlaps(x))
            if share < SMALL / 2:
                break
            here = yield from search.evaluate(x, min(FEW, self.level))
            self.count += 1
            if not _share(self.problem.overlaps(here.image)) < share:
                return True
        return False

    def to(self, y: float) -> Steps[bool]:
        """Go to another y, from the node next to it; whether that succeeded."""
        search = Search(replace(self.problem, parisi=y), self.settings, self.memory)
        x, jacobian = self.starts[0], None
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


def _share(overlaps: BrokenOverlaps) -> float:
    """Share of W that is that of clusters."""
    whole = np.trace(overlaps.q1[0])
    return float(np.trace(overlaps.q1[0] - overlaps.q0[0]) / whole)
