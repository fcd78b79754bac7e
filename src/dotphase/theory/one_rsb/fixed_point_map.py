"""One step of replica symmetry breaking as a problem for the solver: averages, coordinates, map."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from jaxtyping import Array, Bool, Float, Int

from dotphase.model import Model
from dotphase.numerics.fixed_point import Vector
from dotphase.numerics.quadrature import Rule, gauss_hermite, normal_points
from dotphase.theory.coordinates import Coordinates
from dotphase.theory.expectations import (
    Answer,
    AverageQuery,
    Query,
    Stepping,
    Structure,
    Tracks,
    compile_stepping,
    cut,
)
from dotphase.theory.fixed_point_map import Problem, Values
from dotphase.theory.one_rsb.state_evolution import (
    BrokenAverages,
    BrokenOverlaps,
    Clusters,
    broken_conjugates,
    broken_energy,
    cluster_averages,
    fresh_clusters,
    next_broken,
)
from dotphase.theory.overlaps import admissible, shapes_of

#: Inner points per outer one, for two fields; every further field doubles 64 of them.
INNER = 36
#: Share of W below which ``W1 - W0`` is not measured against itself.
LEAST = 1e-3
#: Against which ``unit^2 dF/dy`` is measured.
SLOPE = 0.1


def enough_inside(model: Model) -> int:
    """How many inner points a model needs where nothing else is said."""
    dims = model.length * model.student_rank
    return INNER if dims <= 2 else 2 ** (dims + 4)


@lru_cache(maxsize=16)
def inner_rule(dims: int, count: int) -> Rule:
    """Points and weights for the averages inside a cluster, at most `count` of them.

    Two fields have a product of Gauss-Hermite rules. More have Sobol points with their mirror
    images, stretched so that their second moments are exact.
    """
    order = int(count ** (1 / dims) + 1e-9)
    if dims <= 2:
        return gauss_hermite(order, dims)
    half = 2 ** int(math.log2(count / 2))
    points = normal_points(dims, half, np.random.default_rng(11))
    points = np.concatenate([points, -points])
    points = points @ np.linalg.inv(np.linalg.cholesky(points.T @ points / len(points))).T
    return Rule(np.ascontiguousarray(points.T), np.full(2 * half, 0.5 / half))


@lru_cache(maxsize=16)
def _compile(structure: Structure, inner: int) -> Stepping:
    """Jitted functions for all models of one structure."""

    def given(model: Model, flat: Array) -> tuple[BrokenOverlaps, Rule]:
        q, m, V, theta = shapes_of(model)
        overlaps = BrokenOverlaps(*cut(flat, [q, q, m, V, theta, ()]))
        return overlaps, inner_rule(model.length * model.student_rank, inner)

    def start(model: Model, flat: Array, points: Array) -> Clusters:
        overlaps, rule = given(model, flat)
        return fresh_clusters(model, overlaps, points, rule)

    def step(
        model: Model, flat: Array, points: Array, clusters: Clusters, call: Array
    ) -> tuple[BrokenAverages, Clusters]:
        overlaps, rule = given(model, flat)
        return cluster_averages(model, overlaps, points, rule, clusters, call)

    return compile_stepping(structure, start, step)


@dataclass(frozen=True)
class ClusterQuery(AverageQuery):
    """Averages inside and over clusters of minima, with `inner` points in each."""

    inner: int = INNER

    @property
    def group(self) -> Any:
        return *super().group, self.inner

    @property
    def inside(self) -> int:
        return self.inner

    @property
    def compiled(self) -> Stepping:
        return _compile(self.evaluator.structure, self.inner)

    def averages(self, rows: Float[np.ndarray, "*scrambles n"]) -> Any:
        q, m, V, theta = shapes_of(self.evaluator.model)
        return self.without_odd(BrokenAverages(*cut(rows, [m, q, q, theta, V, (), (), (), ()])))


@dataclass(frozen=True, eq=False)
class Clustered(Problem[BrokenOverlaps, BrokenAverages]):
    """One step of breaking at a given Parisi parameter.

    The coordinates x are those of the overlaps with q0 (`dotphase.theory.coordinates`), those of
    ``q1 - q0``, and a passenger that the map does not depend on: its image is ``unit^2 dF/dy``,
    so that what moves the fixed point moves it too.

    Attributes
    ----------
    coordinates : of the model's overlaps
    held : which coordinates a symmetry holds at zero
    parisi : y
    unit : natural size of y, one over the mean of M
    inner : points inside a cluster
    """

    coordinates: Coordinates
    held: Bool[np.ndarray, " n"]
    parisi: float
    unit: float
    inner: int = INNER

    @property
    def points_inside(self) -> int:
        """How many points there are in each cluster."""
        return self.rule.weights.size

    @cached_property
    def rule(self) -> Rule:
        """Of the averages inside a cluster."""
        return inner_rule(self.model.length * self.model.student_rank, self.inner)

    def _split(self, x: Vector) -> tuple[Vector, Vector]:
        cut = x.size - self.coordinates.squares - 1
        return x[:cut], x[cut:-1]

    def pack(self, overlaps: BrokenOverlaps, slope: Values | float = 0.0) -> Vector:
        """The coordinates of overlaps; leading axes are kept."""
        own = self.coordinates.pack_squares(overlaps.q1 - overlaps.q0)
        passenger = self.unit**2 * np.asarray(slope)[..., None]
        return np.concatenate([self.coordinates.pack(overlaps.between), own, passenger], axis=-1)

    def overlaps(self, x: Vector) -> BrokenOverlaps:
        common, own = self._split(x)
        q0, m, V, theta = self.coordinates.unpack(common)
        q1 = q0 + self.coordinates.unpack_squares(own)
        return BrokenOverlaps(q0, q1, m, V, theta, np.asarray(self.parisi))

    def query(
        self, x: Vector, log2_points: int, seed: int, tracks: Tracks, call: int
    ) -> Query[Answer]:
        asked = (self.evaluator, self.overlaps(x), log2_points, seed, tracks, call)
        return ClusterQuery(*asked, self.inner)

    def advance(self, x: Vector, averages: BrokenAverages) -> np.ndarray:
        try:
            hats = broken_conjugates(self.model, self.alpha, self.overlaps(x), averages)
            following = next_broken(self.model, hats, self.parisi)
            image = self.pack(following, self.energies(x, averages)[1] / self.parisi**2)
        except np.linalg.LinAlgError:
            return np.full_like(x, np.nan)
        image[..., self._held] = 0.0
        return image

    def energies(self, x: Vector, averages: BrokenAverages) -> tuple[Values, Values]:
        """F and the complexity."""
        return broken_energy(self.model, self.alpha, self.overlaps(x), averages)

    def free_energy(self, x: Vector, averages: BrokenAverages) -> Values:
        return self.energies(x, averages)[0]

    def test_error(self, averages: BrokenAverages) -> Values:
        return 2 * np.asarray(averages.test) / self.model.length

    def scale(self, x: Vector) -> Vector:
        common, own = self._split(x)
        sizes = self.coordinates.scale(common)
        each = self.coordinates.unpack_squares(own) / self.coordinates.rho
        mean = float(np.mean(np.trace(each, axis1=1, axis2=2))) / self.model.student_rank
        return np.append(sizes, [max(mean, LEAST * sizes[0])] * own.size + [SLOPE])

    def admissible(self, x: Vector) -> bool:
        overlaps = self.overlaps(x)
        if not np.all(np.isfinite(x)) or np.linalg.eigvalsh(overlaps.q1 - overlaps.q0).min() < 0:
            return False
        return admissible(self.model, overlaps.between)

    def free(self, x: Vector) -> Int[np.ndarray, " free"]:
        return np.flatnonzero(~self._held)

    @cached_property
    def _held(self) -> Bool[np.ndarray, " n"]:
        # W1 - W0 has the signs of W.
        return np.concatenate([self.held, self.held[: self.coordinates.squares], [False]])
