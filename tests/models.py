"""Models used by several tests; module-level functions, so that each is compiled once."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import dotphase as dp

POSITIONS = np.array([[1.0, -0.5, 0.2], [-0.5, 0.8, -0.3], [0.2, -0.3, 0.6]])
_PATTERN = np.exp(np.outer([0.9, -0.8, 0.4], [0.9, -0.8, 0.4]))
ATTENTION = _PATTERN / _PATTERN.sum(axis=1, keepdims=True)


def softmax(h):
    """The same attention as the package's, written the way a user would."""
    return jax.nn.softmax(h @ h.T, axis=-1)


class ThreeTokenTeacher(eqx.Module):
    """A mixture of both mechanisms; a module, so that its weight is not compiled in."""

    weight: np.ndarray

    def __call__(self, h):
        return (1 - self.weight) * softmax(h) + self.weight * jnp.asarray(ATTENTION)


def three_tokens(weight=0.3) -> dp.Model:
    """Three tokens with unequal scales and a general positional Gram matrix."""
    return dp.Model(
        teacher=ThreeTokenTeacher(np.asarray(weight)),
        student=softmax,
        length=3,
        sigma=[0.5, 0.6, 0.4],
        positions=POSITIONS,
        ridge=0.01,
    )


def identity(h):
    """One token, one column: the layer is linear and the model is ridge regression."""
    return h


def ridge_regression() -> dp.Model:
    return dp.Model(teacher=identity, student=identity, length=1, sigma=1.0, ridge=0.01)
