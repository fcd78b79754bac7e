"""Models as a user writes them, in a file of their own: for ``--model my_models.py:NAME``."""

import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import dotphase as dp

LOOK = {2: np.array([[0.6, 0.4], [0.4, 0.6]]), 3: np.full((3, 3), 0.2) + 0.4 * np.eye(3)}


class Mixture(eqx.Module):
    """Attention to equal tokens and to the own position; a module, so that it compiles once."""

    weight: np.ndarray

    def __call__(self, h):
        return (1 - self.weight) * dp.softmax_attention(h) + self.weight * jnp.asarray(LOOK[len(h)])


def _mixing(weight, ridge, rank, sigma, positions):
    return dp.Model(
        teacher=Mixture(np.asarray(weight)),
        student=dp.softmax_attention,
        length=len(sigma),
        student_rank=rank,
        sigma=sigma,
        positions=positions,
        ridge=ridge,
    )


def three_tokens(weight: float = 0.3, ridge: float = 0.01, rank: int = 1, wide: bool = False):
    """Three tokens, two of them at the same position."""
    places = np.array([1.0, -1.0, 1.0])
    sigma = [0.5, 0.6, 0.8] if wide else [0.5, 0.5, 0.5]
    return _mixing(weight, ridge, rank, sigma, np.outer(places, places))


def two_tokens(weight: float = 0.3, ridge: float = 0.01, rank: int = 1, wide: bool = False):
    """Two tokens, which are sooner compiled."""
    sigma = [0.5, 0.8] if wide else [0.5, 0.5]
    return _mixing(weight, ridge, rank, sigma, [[1.0, -1.0], [-1.0, 1.0]])


fixed = three_tokens()
number = 3


def needs(size: float):
    return three_tokens(ridge=size)


def greedy(*parts):
    return three_tokens()


def untold(part):
    return three_tokens()


def wrong():
    return jax.nn.softmax


def fails(kind: str = "nothing"):
    raise RuntimeError(f"cannot make {kind}\nat all")


def prints(weight: float = 0.3):
    print("defined")
    return two_tokens(weight)


def closes():
    sys.stdout.close()
    return two_tokens(0.3)
