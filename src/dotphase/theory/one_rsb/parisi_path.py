"""A branch along the Parisi parameter: fixed points at some y, and F between them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from dotphase.numerics.fixed_point import Vector
from dotphase.theory.newton import Jacobian
from dotphase.theory.one_rsb.fixed_point_map import OneRSBMap
from dotphase.theory.one_rsb.state_evolution import BrokenOverlaps
from dotphase.theory.point_evaluator import EvaluatedPoint
from dotphase.theory.quadrature_error import standard_error

#: The first Parisi parameters, in units of one over the mean of M. The first stands for zero.
FIRST = (1e-3, 1 / 16, 1 / 4, 1.0)

Samples = Float[np.ndarray, " scrambles"]


@dataclass(frozen=True, eq=False)
class Node:
    """A fixed point at one Parisi parameter.

    Attributes
    ----------
    map, x : the map and its fixed point
    jacobian : derivatives of the map, measured on fewer points
    norms, test_error, slope : results at x; slope is dF/dy
    samples : values of each scramble alone for these and for F
    """

    map: OneRSBMap
    x: Vector
    jacobian: Jacobian
    norms: dict[str, float]
    test_error: float
    slope: float
    samples: dict[str, Samples]

    @classmethod
    def at(cls, point: EvaluatedPoint, jacobian: Jacobian) -> Node:
        """Results at a fixed point. The fixed point of each scramble is a Newton step away."""
        one_rsb_map: Any = point.map
        gradient = np.zeros(point.x.size)
        gradient[jacobian.free] = jacobian.test_gradient
        averages = point.expectations.per_scramble
        test_errors = one_rsb_map.test_error(averages)

        def results(step: Vector, test_error: float) -> dict[str, float]:
            return one_rsb_map.norms(point.x + step) | {
                "test_error": test_error + float(step @ gradient),
                "slope": float(point.image[-1] + step[-1]) / one_rsb_map.unit**2,
            }

        values = results(np.zeros_like(point.x), point.test_error)
        steps = jacobian.newton_step(point.images - point.image)
        each = [results(*pair) for pair in zip(steps, test_errors, strict=True)]
        samples = {name: np.asarray([row[name] for row in each]) for name in values}
        # Stationary, so that the steps of the scrambles do not change it.
        samples["free_energy"] = np.asarray(one_rsb_map.free_energy(point.x, averages))
        slope, test_error = values.pop("slope"), values.pop("test_error")
        return cls(one_rsb_map, point.x, jacobian, values, test_error, slope, samples)

    @property
    def y(self) -> float:
        """The Parisi parameter."""
        return self.map.parisi

    @property
    def overlaps(self) -> BrokenOverlaps:
        """The overlaps at x."""
        return self.map.overlaps(self.x)


class Path:
    """The nodes of a branch in the order of y, and F between them."""

    def __init__(self, nodes: list[Node], unit: float) -> None:
        self.nodes = sorted(nodes, key=lambda node: node.y)
        self.y = np.asarray([node.y for node in self.nodes])
        #: Small and large y are of the same weight on this scale, and zero is on it.
        self._scale = np.log1p(self.y / (FIRST[1] * unit))
        self._unit = FIRST[1] * unit

    def _curve(self, slope: Float[np.ndarray, " nodes"]) -> Any:
        """``dF/dy dy/ds`` on the scale s."""
        # Imported here: it takes a tenth of a second, which every first solve would wait for.
        from scipy.interpolate import PchipInterpolator

        return PchipInterpolator(self._scale, slope * (self.y + self._unit))

    @property
    def slope(self) -> Float[np.ndarray, " nodes"]:
        """dF/dy, over all scrambles."""
        return np.asarray([node.slope for node in self.nodes])

    @property
    def slopes(self) -> Float[np.ndarray, "scrambles nodes"]:
        """dF/dy from each scramble."""
        return np.stack([node.samples["slope"] for node in self.nodes], axis=1)

    def gain_at(
        self, y: Float[np.ndarray, "*any"], slope: Float[np.ndarray, " nodes"] | None = None
    ) -> Float[np.ndarray, "*any"]:
        """F anywhere on the path, less its replica-symmetric value at y = 0."""
        curve = self._curve(self.slope if slope is None else slope).antiderivative()
        return np.asarray(curve(np.log1p(y / self._unit)) - curve(0.0))

    @property
    def gain_stderr(self) -> Float[np.ndarray, " nodes"]:
        """Standard error of the gain at the nodes.

        Of what each scramble gives at its own fixed point, a Newton step away, or of F of each at
        the common one, where it is stationary. Either is too large where its expansion fails:
        the step is too long, or what is of second order counts. The smaller one holds.
        """
        own = np.stack([self.gain_at(self.y, slope) for slope in self.slopes])
        energies = np.stack([node.samples["free_energy"] for node in self.nodes], axis=1)
        common = energies - energies[:, :1]
        errors = [[standard_error(column) for column in each.T] for each in (own, common)]
        return np.min(errors, axis=0)

    def top(self) -> tuple[float, float]:
        """Maximum of F: y with dF/dy = 0, and d2F/dy2; NaN if F still rises at the last node."""
        curve = self._curve(self.slope)
        roots = curve.roots(extrapolate=False)
        roots = roots[np.isfinite(roots) & (roots > self._scale[0])]
        if not roots.size:
            return math.nan, math.nan
        y = float(np.expm1(roots[0]) * self._unit)
        return y, float(curve(roots[0], 1)) / (y + self._unit) ** 2
