"""Tokens whose mean depends on a hidden variable of each sentence.

``x_l = sum_j a_lj mu_j + noise``: the loadings a depend on the hidden variable, the directions
mu_j do not. In the limit of large d only their Gram matrix ``mu_j . mu_k`` and their overlaps
``mu_j . Q*/sqrt d`` with the columns of the teacher matter. The fields of the student depend on a
direction through ``m_j = Q^T mu_j/sqrt d``, as on a position.
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr
from jaxtyping import Array, Float

from dotphase.config import validation
from dotphase.errors import InvalidInput

#: Rounding error allowed in the sum of probabilities, and in Gram matrices.
ROUNDING = 1e-9


class Latent(eqx.Module):
    """Hidden variables of a sentence and the means of its tokens.

    Parameters
    ----------
    loadings : (S, L, J) array, or callable
        a_lj for each of S hidden states; or a JAX function of `normals` standard normal numbers
        that returns one (L, J) array.
    probabilities : (S,) array, optional
        Probabilities of the states; equal if not given. Not with a function.
    gram : (J, J) array, optional
        ``mu_j . mu_k``; orthonormal directions if not given.
    teacher : (J, t) array, optional
        ``mu_j . Q*/sqrt d`` for each column of the teacher, Q* being of length sqrt d; zero if
        not given.
    normals : int
        Number of standard normal arguments of a function of the loadings.

    Examples
    --------
    One of two tokens is shifted along one direction; which of them is hidden:

    >>> hidden = dp.analysis.Latent(loadings=[[[1.0], [0.0]], [[0.0], [1.0]]], gram=[[2.0]])
    >>> hidden.directions
    1
    """

    loadings: Any
    probabilities: Float[np.ndarray, " states"] | None
    gram: Float[np.ndarray, "J J"]
    teacher: Float[np.ndarray, "J t"] | None
    normals: int = eqx.field(static=True)

    def __init__(
        self,
        loadings: Any,
        probabilities: Any = None,
        gram: Any = None,
        teacher: Any = None,
        normals: int = 1,
    ) -> None:
        self.normals = validation.integer("latent.normals", normals, at_least=1)
        if callable(loadings):
            if probabilities is not None:
                rule = "must not be given where the loadings are a function"
                raise InvalidInput("latent.probabilities", probabilities, rule)
            if gram is None:
                rule = "must be given where the loadings are a function"
                raise InvalidInput("latent.gram", gram, rule)
            self.loadings, self.probabilities = loadings, None
        else:
            if normals != 1:
                rule = "must be 1 where the states are listed"
                raise InvalidInput("latent.normals", normals, rule)
            self.loadings = _check_loadings(loadings)
            self.probabilities = _check_probabilities(probabilities, len(self.loadings))
            gram = np.eye(self.loadings.shape[2]) if gram is None else gram
        self.gram = check_gram("latent.gram", gram)
        self.teacher = None if teacher is None else _check_overlaps(teacher, self.gram)

    @property
    def directions(self) -> int:
        """Number of directions mu_j."""
        return len(self.gram)

    def overlaps(self, rank: int) -> Float[np.ndarray, "J t"]:
        """Overlaps of the directions with the teacher's columns."""
        return np.zeros((self.directions, rank)) if self.teacher is None else self.teacher

    def draw(self, normal: Float[Array, " normals"]) -> Float[Array, "L J"]:
        """Loadings of one sentence from standard normal numbers."""
        if self.probabilities is None:
            return jnp.asarray(self.loadings(normal))
        # Comparisons with the inner edges only: rounding cannot lead beyond the last state.
        edges = jnp.cumsum(jnp.asarray(self.probabilities))[:-1]
        return jnp.asarray(self.loadings)[jnp.sum(ndtr(normal[0]) > edges)]


def check_gram(field: str, value: Any, size: int | None = None) -> Float[np.ndarray, "n n"]:
    """Check a symmetric positive semi-definite matrix; `InvalidInput` for any other value."""
    try:
        numbers = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.zeros(0)
    is_square = numbers.ndim == 2 and numbers.shape[0] == numbers.shape[1] and numbers.size > 0
    n = size or (len(numbers) if is_square else 1)
    gram = validation.array(field, value, (n, n))
    scale = max(float(np.max(np.abs(gram))), 1.0)
    if not np.allclose(gram, gram.T, rtol=0, atol=ROUNDING * scale):
        raise InvalidInput(field, value, "must be a symmetric Gram matrix")
    gram = (gram + gram.T) / 2
    if np.linalg.eigvalsh(gram)[0] < -ROUNDING * scale:
        raise InvalidInput(field, value, "must be positive semi-definite, as a Gram matrix is")
    return gram


def _check_loadings(loadings: Any) -> Float[np.ndarray, "S L J"]:
    values = validation.finite_array(loadings)
    if values is None or values.ndim != 3 or not values.size:
        rule = "must be finite numbers: one (L, J) array for each hidden state, or a function"
        raise InvalidInput("latent.loadings", loadings, rule)
    return values


def _check_probabilities(probabilities: Any, states: int) -> Float[np.ndarray, " states"]:
    if probabilities is None:
        return np.full(states, 1 / states)
    values = validation.array("latent.probabilities", probabilities, (states,))
    if np.any(values < 0) or abs(values.sum() - 1) > ROUNDING:
        rule = f"must be {states} numbers >= 0 that sum to one (they sum to {values.sum():.6g})"
        raise InvalidInput("latent.probabilities", probabilities, rule)
    return values


def _check_overlaps(teacher: Any, gram: Float[np.ndarray, "J J"]) -> Float[np.ndarray, "J t"]:
    values = np.asarray(teacher, dtype=np.float64)
    if values.ndim != 2 or len(values) != len(gram) or not np.all(np.isfinite(values)):
        rule = f"must be {len(gram)} rows of finite numbers, one for each column of the teacher"
        raise InvalidInput("latent.teacher", teacher, rule)
    remainder = gram - values @ values.T
    if np.linalg.eigvalsh(remainder)[0] < -ROUNDING * max(float(np.abs(gram).max()), 1.0):
        rule = "must leave gram - teacher teacher^T positive semi-definite: no directions have both"
        raise InvalidInput("latent.teacher", teacher, rule)
    return values
