"""The fixed-point map of one step of replica symmetry breaking: averages and coordinates."""

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
from dotphase.runtime.memoize import memoize
from dotphase.theory.coordinates import Coordinates
from dotphase.theory.expectations import (
    CompiledAverages,
    Evaluator,
    Structure,
    compile_averages,
    split_columns,
)
from dotphase.theory.fixed_point_map import FixedPointMap, Values
from dotphase.theory.one_rsb.state_evolution import (
    BrokenAverages,
    BrokenOverlaps,
    Clusters,
    broken_conjugates,
    broken_energy,
    cluster_averages,
    initial_clusters,
    next_broken,
)
from dotphase.theory.overlaps import admissible, shapes_of

#: Inner points per outer one, for two fields; every further field doubles 64 of them.
INNER_POINTS = 36
#: Share of W below which ``W1 - W0`` is not measured against itself.
MIN_SHARE = 1e-3
#: Size against which ``unit^2 dF/dy`` is measured.
SLOPE_SCALE = 0.1


def default_inner_points(model: Model) -> int:
    """Default number of inner points per outer one."""
    dims = model.length * model.student_rank
    return INNER_POINTS if dims <= 2 else 2 ** (dims + 4)


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
def _compile(structure: Structure, inner: int) -> CompiledAverages:
    """Compile the averages for all models of one structure."""

    def unflatten(model: Model, flat: Array) -> tuple[BrokenOverlaps, Rule]:
        q, m, V, theta = shapes_of(model)
        overlaps = BrokenOverlaps(*split_columns(flat, [q, q, m, V, theta, ()]))
        return overlaps, inner_rule(model.length * model.student_rank, inner)

    def initial(model: Model, flat: Array, points: Array) -> Clusters:
        overlaps, rule = unflatten(model, flat)
        return initial_clusters(model, overlaps, points, rule)

    def step(
        model: Model, flat: Array, points: Array, clusters: Clusters, call: Array
    ) -> tuple[BrokenAverages, Clusters]:
        overlaps, rule = unflatten(model, flat)
        return cluster_averages(model, overlaps, points, rule, clusters, call)

    return compile_averages(structure, initial, step)


class ClusterEvaluator(Evaluator):
    """Averages inside and over clusters of minima, with `inner` points in each."""

    def __init__(self, model: Model, inner: int) -> None:
        super().__init__(model)
        self.inner = inner

    @cached_property
    def averages(self) -> CompiledAverages:
        return _compile(self.structure, self.inner)

    def unflatten(self, rows: Float[np.ndarray, "*scrambles n"]) -> Any:
        q, m, V, theta = shapes_of(self.model)
        shapes = [m, q, q, theta, V, (), (), (), ()]
        return BrokenAverages(*split_columns(rows, shapes))

    def _compile_ahead(self, *args: Any) -> None:
        """Symmetry breaking needs no responses."""


#: The evaluator of a model and a number of inner points, made once.
cluster_evaluator_of = memoize(8)(ClusterEvaluator)


@dataclass(frozen=True, eq=False)
class OneRSBMap(FixedPointMap[BrokenOverlaps, BrokenAverages]):
    """One step of symmetry breaking at a given Parisi parameter.

    The coordinates x are those of the overlaps with q0 (`dotphase.theory.coordinates`), those of
    ``q1 - q0``, and a passenger that the map does not depend on: its image is ``unit^2 dF/dy``,
    so that what moves the fixed point moves it too.

    Attributes
    ----------
    coordinates : coordinates of the model's overlaps
    fixed : which coordinates a symmetry fixes at zero
    parisi : y
    unit : natural size of y, one over the mean of M
    inner : points inside a cluster
    """

    coordinates: Coordinates
    fixed: Bool[np.ndarray, " n"]
    parisi: float
    unit: float
    inner: int = INNER_POINTS

    @cached_property
    def evaluator(self) -> Evaluator:
        return cluster_evaluator_of(self.model, self.inner)

    @property
    def points_inside(self) -> int:
        """Number of points in each cluster."""
        return self.rule.weights.size

    @cached_property
    def rule(self) -> Rule:
        """Points and weights of the averages inside a cluster."""
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

    def advance(self, x: Vector, averages: BrokenAverages) -> np.ndarray:
        try:
            hats = broken_conjugates(self.model, self.alpha, self.overlaps(x), averages)
            advanced = next_broken(self.model, hats, self.parisi)
            image = self.pack(advanced, self.energies(x, averages)[1] / self.parisi**2)
        except np.linalg.LinAlgError:
            return np.full_like(x, np.nan)
        image[..., self._fixed] = 0.0
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
        return np.append(sizes, [max(mean, MIN_SHARE * sizes[0])] * own.size + [SLOPE_SCALE])

    def admissible(self, x: Vector) -> bool:
        overlaps = self.overlaps(x)
        if not np.all(np.isfinite(x)) or np.linalg.eigvalsh(overlaps.q1 - overlaps.q0).min() < 0:
            return False
        return admissible(self.model, overlaps.between)

    def free(self, x: Vector) -> Int[np.ndarray, " free"]:
        return np.flatnonzero(~self._fixed)

    @cached_property
    def _fixed(self) -> Bool[np.ndarray, " n"]:
        # W1 - W0 has the signs of W.
        return np.concatenate([self.fixed, self.fixed[: self.coordinates.squares], [False]])
