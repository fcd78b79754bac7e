"""State evolution the textbook way, for comparison.

Each average is an integral of its own, taken with a fixed rule; at every node the proximal
point is found by one call of SciPy's BFGS with numerical gradients; the overlaps are
iterated with damping until they change by less than 1e-4. Model of the paper, rank one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from reproduction.released.procedure import degree_seven, product_rule

MIXING = np.array([[0.6, 0.4], [0.4, 0.6]])


def attention(h: np.ndarray) -> np.ndarray:
    scores = np.outer(h, h)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def all_nodes() -> tuple[np.ndarray, np.ndarray]:
    """The planar rule of degree 7 for (xi_1, xi_2) times the same for (y_1, y_2): 144 nodes."""
    nodes, weights = product_rule(degree_seven(), degree_seven())
    return nodes.T, weights


@dataclass
class Textbook:
    """The solver; `minimisations` counts the calls of BFGS."""

    alpha: float
    omega: float = 0.3
    sigma: float = 0.5
    ridge: float = 0.01
    minimisations: int = 0

    def force(self, node: np.ndarray, q: float, m: float, V: float, theta: float) -> tuple:
        xi, y = node[:2], node[2:]
        centre = np.array([m, -m]) + np.sqrt(q) * xi
        h = theta / np.sqrt(q) * xi + np.sqrt(self.sigma**2 - theta**2 / q) * y
        target = (1 - self.omega) * attention(h) + self.omega * MIXING

        def objective(x: np.ndarray) -> float:
            miss = target - attention(x)
            return np.sum((x - centre) ** 2) / (2 * V) + 0.5 * self.sigma**2 * np.sum(miss**2)

        self.minimisations += 1
        x = minimize(objective, centre, method="BFGS").x
        return (x - centre) / V, x, target, centre

    def integrate(self, function: Callable, *overlaps: float) -> np.ndarray:
        nodes, weights = all_nodes()
        return sum(
            weight * function(node, *self.force(node, *overlaps))
            for node, weight in zip(nodes, weights, strict=True)
        )

    def step(self, q: float, m: float, V: float, theta: float) -> tuple:
        s2 = self.sigma**2
        left = np.sqrt(s2 - theta**2 / q)
        args = (q, m, V, theta)
        qhat = self.alpha * self.integrate(lambda n, g, *_: g**2, *args)
        mhat = self.alpha * self.integrate(lambda n, g, *_: g, *args)
        thetahat = self.alpha * self.integrate(lambda n, g, *_: g * n[2:], *args) / left
        response = self.integrate(lambda n, g, *_: g * n[:2], *args)
        Vhat = -self.alpha * response / np.sqrt(q) + thetahat * theta / q
        R = 1 / (self.ridge + s2 * Vhat.sum())
        signal = s2 * thetahat.sum()
        position = mhat[0] - mhat[1]
        W = R**2 * (s2 * qhat.sum() + signal**2 + position**2)
        return s2 * W, R * position, s2 * R, s2 * R * signal

    def solve(self, start: tuple, damping: float = 0.8, tolerance: float = 1e-4) -> dict:
        point, count = np.array(start), 0
        for _ in range(200):
            new = np.array(self.step(*point))
            size = np.maximum(np.abs(point), 1e-6)
            change = np.max(np.abs(new - point) / size)
            count += 1
            point = damping * point + (1 - damping) * new
            if change < tolerance:
                break
        q, m, V, theta = point
        s2 = self.sigma**2
        loss = self.integrate(
            lambda n, g, x, target, c: 0.5 * s2 * np.sum((target - attention(x)) ** 2), *point
        )
        test = self.integrate(
            lambda n, g, x, target, c: 0.5 * s2 * np.sum((target - attention(c)) ** 2), *point
        )
        return {
            "q": q, "m": abs(m), "V": V, "theta": abs(theta),
            "train_loss": self.alpha * loss + 0.5 * self.ridge * q / s2,
            "test_error": float(test), "iterations": count,
        }  # fmt: skip
