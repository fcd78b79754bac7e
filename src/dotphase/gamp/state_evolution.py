"""State evolution of damped message passing, iteration by iteration.

Without damping the overlaps of one iteration follow from those of the last. A damped Q is a
mixture of many iterations with correlated Gaussian noises, so its overlaps follow from the
covariances of all pairs of iterations. Every Q^t is written in the basis

    [ Q*, sqrt(d) p_1, ..., sqrt(d) p_L, Q^0, u^0, u^1, ... ]

where u^s is the noise of iteration s, with ``u^s . u^t/d = alpha sum_l sigma_l^2 E[g_l^s
g_l^t]``. A sentence is a path: its teacher field and its centers at all iterations so far,
Gaussian with the Gram matrix of (Q*, Q^0, ..., Q^t) as covariance. The averages over g are
taken over many such paths, drawn with antithetic images so that symmetries stay exact.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dotphase.finite_d.datasets import Positions, TeacherWeights
from dotphase.finite_d.loss import Weights, limit_form
from dotphase.gamp.force import Sentences, apply_force, initial_prox_state, split_blocks
from dotphase.gamp.iteration import raise_eigenvalues
from dotphase.model import Model
from dotphase.model.symmetry import sign_flips
from dotphase.numerics.proximal_map import ProxState, vmap_points
from dotphase.numerics.quadrature import ANTITHETIC_SIGNS
from dotphase.runtime import interrupt

#: Number of paths, antithetic images included.
PATHS = 2**14
#: Smallest squared length of a new direction, relative to that of its column.
MIN_SQUARE = 1e-9


def overlap_gram(
    teacher_weights: TeacherWeights, positions: Positions, weights: Weights
) -> Float[np.ndarray, "k k"]:
    """Gram matrix of ``[Q*, sqrt(d) p, Q]`` over d."""
    d = weights.shape[0]
    scaled = np.sqrt(d) * np.asarray(positions).T
    basis = np.concatenate([np.asarray(teacher_weights), scaled, np.asarray(weights)], axis=1)
    return np.asarray(basis.T @ basis / d)


def mean_gram(model: Model, grams: Sequence[Float[np.ndarray, "k k"]]) -> Float[np.ndarray, "k k"]:
    """Average the Gram matrices of several runs.

    If student and teacher do not depend on the signs of Q and Q*, these signs are chosen so that m
    and theta are positive: small overlaps of random sign would otherwise cancel in the average.
    """
    t, r = model.teacher_rank, model.student_rank
    flips = sign_flips(model)
    even_student = any(np.all(s < 0) and np.all(u > 0) for s, u in flips)
    even_teacher = any(np.all(u < 0) and np.all(s > 0) for s, u in flips)
    aligned = []
    for gram in grams:
        signs = np.ones(len(gram))
        if even_student:
            signs[-r:] = np.sign(np.sum(gram[t, -r:])) or 1.0
        if even_teacher:
            signs[:t] = np.sign(np.trace(gram[:t, -r:] * signs[-r:])) or 1.0
        aligned.append(signs[:, None] * gram * signs)
    return np.asarray(np.mean(aligned, axis=0))


@dataclass
class Paths:
    """Gaussian fields with a growing covariance, drawn one column at a time.

    The fields of columns b_1, b_2, ... in R^d are ``x_l . b/sqrt d``, with covariance
    ``sigma_l^2 b . b'/d``. Each new column adds a row to their Cholesky factor.
    """

    model: Model
    rng: np.random.Generator
    noise: list[np.ndarray] = field(default_factory=list)
    rows: list[np.ndarray] = field(default_factory=list)

    def add(
        self, covariance: Float[np.ndarray, " columns+1"], mirrored: int
    ) -> Float[np.ndarray, "tokens paths"]:
        """Draw the field of a column from its covariances with the earlier ones and with itself.

        `mirrored` is the index of the sign in `ANTITHETIC_SIGNS` of the images of new noise: 1 for
        the teacher's, 0 for the student's.
        """
        columns = len(self.rows)
        row = np.zeros(columns + 1)
        for k, earlier in enumerate(self.rows):
            if earlier[k] > 0:
                row[k] = (covariance[k] - row[:k] @ earlier[:k]) / earlier[k]
        square = covariance[columns] - row[:columns] @ row[:columns]
        if square > MIN_SQUARE * max(covariance[columns], 1e-300):
            row[columns] = np.sqrt(square)
        self.rows.append(row)
        base = self.rng.standard_normal((self.model.length, 1, PATHS // len(ANTITHETIC_SIGNS)))
        images = np.asarray([image[mirrored] for image in ANTITHETIC_SIGNS])[None, :, None] * base
        self.noise.append(images.reshape(self.model.length, PATHS))
        total = np.tensordot(row, np.stack(self.noise), axes=1)
        return np.asarray(self.model.sigma)[:, None] * total


def predict(
    model: Model,
    alpha: float,
    gram: Float[np.ndarray, "k k"],
    V: Float[np.ndarray, "tokens r r"],
    iterations: int,
    damping: float,
    seed: int = 0,
) -> list[dict[str, float]]:
    """Predict the norms of q, m and theta of token 1 for Q^0, ..., Q^iterations.

    `gram` is the `overlap_gram` of Q^0, and `V` are the initial variances. Each row but the last
    also has the `jump_weight`. Message passing uses the mean Jacobian as response, which misses the
    jumps of the proximal map: its centers are Gaussian, and this prediction is right, up to an
    error of the order of that weight.
    """
    history = _History(model, alpha, gram, V, damping, seed)
    rows = []
    for step in range(iterations + 1):
        interrupt.check()
        rows.append(history.norms())
        if step < iterations:
            rows[-1]["jump_weight"] = history.advance(step)
    return rows


class _History:
    """Overlaps and fields of all iterations so far.

    Columns are vectors in R^d, written as coefficients in the basis of this module; `gram` is the
    Gram matrix of the basis over d.
    """

    def __init__(
        self, model: Model, alpha: float, gram: Any, V: Any, damping: float, seed: int
    ) -> None:
        t, self.size = model.teacher_rank, len(gram)
        self.model, self.alpha, self.damping = model, alpha, damping
        self.rho = np.asarray(model.rho)[:, None, None]
        self.gram, self.V = np.asarray(gram), np.asarray(V)
        self.positions = np.arange(t, t + model.length)
        basis = np.eye(self.size)
        self.weights = basis[:, t + model.length :]
        self.columns = basis[:, :t]  # teacher, and the weights of all iterations
        self.paths = Paths(model, np.random.default_rng([seed, 5]))
        heads = [self.paths.add(self._covariances(self.columns[:, : k + 1]), 1) for k in range(t)]
        self.teacher_fields = np.stack(heads, axis=1)
        noise = np.random.default_rng([seed, 6]).standard_normal((model.normals, PATHS))
        self.sentences = _sentences(model, jnp.asarray(self.teacher_fields), jnp.asarray(noise))
        self.forces: list[np.ndarray] = []
        self.prox_states: list[ProxState] = []

    def _covariances(self, columns: np.ndarray) -> Float[np.ndarray, " columns"]:
        """Covariances of the last column with all columns."""
        return np.asarray(columns.T @ self.gram @ columns[:, -1])

    def norms(self) -> dict[str, float]:
        """Norms of the overlaps of token 1."""
        overlaps = {
            "q": self.rho[0] * (self.weights.T @ self.gram @ self.weights),
            "m": (self.gram[self.positions] @ self.weights)[0],
            "theta": self.rho[0] * (self.weights.T @ self.gram[:, : self.model.teacher_rank]),
        }
        return {name: float(np.linalg.norm(part)) for name, part in overlaps.items()}

    def advance(self, step: int) -> float:
        """Do one iteration; return the share of the response that jumps carry."""
        t, r, ridge = self.model.teacher_rank, self.model.student_rank, float(self.model.ridge)
        fluctuation = self._student_fields()
        means = self.gram[self.positions] @ self.weights
        g, response = self._force(means[..., None] + fluctuation, step)
        A = np.asarray(raise_eigenvalues(jnp.asarray(-self.alpha * response), ridge))
        R = np.linalg.inv(ridge * np.eye(r) + A)

        # Stein: sum_mu x^T g/sqrt d = Q* (dg/dh*)^T + Q (dg/dc)^T + noise. The mean derivatives
        # follow from the correlations of g with the fields, jumps included.
        fields = np.concatenate([self.teacher_fields, fluctuation], axis=1)
        joint = np.concatenate([self.columns[:, :t], self.weights], axis=1)
        covariance = joint.T @ self.gram @ joint
        inverse = np.linalg.pinv(covariance, rcond=1e-8, hermitian=True)
        slopes = self.alpha * np.einsum("lip,ljp->ij", g, fields) / PATHS @ inverse
        drift = joint @ slopes.T + self.weights @ A.T
        drift[self.positions] += self.alpha * g.mean(axis=2)

        self._add_noise(g)
        drift, weights, self.columns = (
            np.pad(coefficients, ((0, r), (0, 0)))
            for coefficients in (drift, self.weights, self.columns)
        )
        drift[-r:] += np.eye(r)
        self.weights = (1 - self.damping) * drift @ R.T + self.damping * weights
        self.V = (1 - self.damping) * self.rho * R + self.damping * self.V
        return _jump_weight(-slopes[:, t:], -self.alpha * response)

    def _student_fields(self) -> Float[np.ndarray, "tokens r paths"]:
        """Draw the fields of the current weights."""
        fields = []
        for column in self.weights.T:
            self.columns = np.concatenate([self.columns, column[:, None]], axis=1)
            fields.append(self.paths.add(self._covariances(self.columns), 0))
        return np.stack(fields, axis=1)

    def _force(
        self, center: Float[np.ndarray, "tokens r paths"], step: int
    ) -> tuple[Float[np.ndarray, "tokens r paths"], Float[np.ndarray, "r r"]]:
        """Force of the proximal map on every path, and its mean response summed over tokens."""
        centers = [jnp.asarray(c) for c in np.split(center, len(self.sentences), axis=-1)]
        prox_states = self.prox_states or [initial_prox_state(block) for block in centers]
        blocks = apply_force(
            self.model, centers, jnp.asarray(self.V), self.sentences, prox_states, jnp.asarray(step)
        )
        self.prox_states = [block.prox_state for block in blocks]
        mean = np.sum([block.response for block in blocks], axis=0) / PATHS
        g = np.concatenate([block.g for block in blocks], axis=-1)
        return g, np.sum(self.rho * mean, axis=0)

    def _add_noise(self, g: Float[np.ndarray, "tokens r paths"]) -> None:
        """Append the noise of this iteration to the basis, correlated with the earlier ones."""
        self.forces.append(g)
        old, r = len(self.gram), g.shape[1]
        gram = np.zeros((old + r, old + r))
        gram[:old, :old] = self.gram
        for k, force in enumerate(self.forces):
            block = self.alpha * np.einsum("l,lip,ljp->ij", self.rho[:, 0, 0], g, force) / PATHS
            columns = slice(self.size + k * r, self.size + (k + 1) * r)
            gram[old:, columns] = block
            gram[columns, old:] = block.T
        gram[old:, old:] = (gram[old:, old:] + gram[old:, old:].T) / 2
        self.gram = gram


def _jump_weight(by_parts: np.ndarray, smooth: np.ndarray) -> float:
    """Share of the response that jumps carry: the part that the mean Jacobian misses."""
    jumps = float(np.linalg.norm(by_parts - smooth))
    return jumps / max(jumps + float(np.linalg.norm(smooth)), 1e-300)


@eqx.filter_jit
def _sentences(
    model: Model, h: Float[Array, "tokens t paths"], noise: Float[Array, "normals paths"]
) -> tuple[Sentences, ...]:
    """Quadratic forms of the losses of all paths, for orthogonal tokens as in the limit."""
    target = vmap_points(model.label)(h, noise)
    form = target if model.loss is not None else vmap_points(partial(limit_form, model))(target)
    return split_blocks(Sentences(form, jnp.ones(PATHS)))
