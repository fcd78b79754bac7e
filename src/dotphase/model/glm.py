"""Generalized linear models as the one-token case of attention.

With a single token the attention matrix is a number and the loss of a sample is
``ell = sigma^2/2 (T(h*) - S(X))^2``. Dividing two scalar links by sigma gives the squared loss

    ell(X) = 1/2 (f*(h*) - f(X))^2,   h* = Q*.x/sqrt d,   X = Q.x/sqrt d,

of a generalized linear model with teacher link f*, student link f and inputs
``x ~ N(0, sigma^2 I)``. Two identities are ridge regression.
"""

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dotphase.config import validation
from dotphase.model.definition import Model

Link = Callable[[Float[Array, ""]], Float[Array, ""]]


def identity(h: Float[Array, ""]) -> Float[Array, ""]:
    """The link of ridge regression: a named function, so that it is compiled once."""
    return h


class ScalarLink(eqx.Module):
    """One-token attention ``h -> f(h)/sigma``."""

    link: Any
    sigma: Float[np.ndarray, ""]

    def __call__(self, h: Float[Array, "1 1"]) -> Float[Array, "1 1"]:
        return jnp.reshape(self.link(h[0, 0]) / self.sigma, (1, 1))


def scalar_link(teacher: Link, student: Link, *, sigma: float = 1.0, ridge: float = 0.01) -> Model:
    """A generalized linear model with squared loss.

    Parameters
    ----------
    teacher, student : callable
        The links f* and f: JAX functions of one number.
    sigma : float
        Standard deviation of the entries of an input.
    ridge : float
        Penalty lambda on the student's weights.

    Returns
    -------
    Model
        Its `test_error` is ``E (f* - f)^2``; its branches are `semantic` (aligned with the
        teacher) and `uninformed`, for there are no positions.

    Examples
    --------
    Ridge regression:

    >>> dp.scalar_link(lambda h: h, lambda h: h, ridge=0.1).length
    1
    """
    scale = np.asarray(validation.number("sigma", sigma, above=0))
    return Model(
        teacher=ScalarLink(teacher, scale),
        student=ScalarLink(student, scale),
        length=1,
        sigma=float(scale),
        ridge=ridge,
    )


def ridge_regression(alpha: float, ridge: float) -> dict[str, float]:
    """Ridge regression on noiseless labels with unit inputs, in closed form.

    ``V = (1 - alpha V/(1 + V))/ridge`` is a quadratic equation; with ``hat = alpha/(1 + V)``
    the rest is linear: ``theta = V hat`` and
    ``q = V^2 (alpha (1 - 2 theta + q)/(1 + V)^2 + hat^2)``. At
    alpha = 1 and ridge = .01 it is ``V (1 + V) = 100``.

    Returns
    -------
    dict
        V, theta, q, test_error and train_loss, as `dotphase.solve` names them.

    Examples
    --------
    >>> round(dp.analysis.ridge_regression(alpha=2.0, ridge=0.1)["test_error"], 5)
    0.01227
    """
    alpha = validation.number("alpha", alpha, above=0)
    ridge = validation.number("ridge", ridge, above=0)
    b = ridge + alpha - 1
    # This form of the root has no cancellation.
    size = math.sqrt(b * b + 4 * ridge)
    V = 2 / (b + size) if b > 0 else (size - b) / (2 * ridge)
    hat = alpha / (1 + V)
    theta = V * hat
    response = V * V * alpha / (1 + V) ** 2
    q = (response * (1 - 2 * theta) + (V * hat) ** 2) / (1 - response)
    error = 1 - 2 * theta + q
    energy = alpha * error / (2 * (1 + V) ** 2) + ridge * q / 2
    return {"V": V, "theta": theta, "q": q, "test_error": error, "train_loss": energy}
