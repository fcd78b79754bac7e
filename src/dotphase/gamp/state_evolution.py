"""State evolution of damped message passing, iteration by iteration.

Without damping the overlaps of one iteration follow from those of the last. A damped Q is a
mixture of many iterations, whose Gaussian noises are correlated; its overlaps follow from
the covariances of all pairs of iterations. They are all kept here: every Q^t is written
in the basis

    [ Q*, sqrt(d) p_1, ..., sqrt(d) p_L, Q^0, u^0, u^1, ... ]

where u^s is the noise of iteration s, with ``u^s . u^t/d = alpha sum_l sigma_l^2 E[g_l^s
g_l^t]``. A sentence is a path: its teacher field and its centres at all iterations so far,
Gaussian with the Gram matrix of (Q*, Q^0, ..., Q^t) as covariance. The averages over g are
taken over many such paths, drawn with antithetic images so that symmetries stay exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dotphase.finite_d.loss import limit_form
from dotphase.gamp.force import Sentences, apply_force, cut, fresh
from dotphase.gamp.iteration import bounded
from dotphase.model import Model
from dotphase.model.symmetry import sign_flips
from dotphase.numerics.proximal_map import ProxState, vmap_points
from dotphase.numerics.quadrature import ANTITHETIC_SIGNS
from dotphase.runtime import interrupt

#: Paths, images included.
PATHS = 2**14
#: A direction whose part orthogonal to the earlier ones is below this share of it is not new.
NEW = 1e-9


@dataclass(frozen=True)
class StartOverlaps:
    """Overlaps of a start: the Gram matrix of ``[Q*, sqrt(d) p, Q^0]`` over d, and V."""

    gram: Float[np.ndarray, "k k"]
    V: Float[np.ndarray, "tokens r r"]

    @classmethod
    def of(
        cls,
        teacher_weights: Float[Array, "d t"],
        positions: Float[Array, "tokens d"],
        weights: Float[Array, "d r"],
        V: Float[np.ndarray, "tokens r r"],
    ) -> StartOverlaps:
        """Measured at finite d."""
        d = weights.shape[0]
        along = np.sqrt(d) * np.asarray(positions).T
        basis = np.concatenate([np.asarray(teacher_weights), along, np.asarray(weights)], axis=1)
        return cls(basis.T @ basis / d, np.asarray(V))


def average_start(model: Model, starts: Sequence[StartOverlaps]) -> StartOverlaps:
    """The start with the overlaps that several have on average.

    Where student and teacher do not see the signs of Q and Q*, those are chosen so that m and
    theta are positive: small overlaps of random sign would otherwise cancel in the average.
    """
    t, r = model.teacher_rank, model.student_rank
    flips = sign_flips(model)
    blind_student = any(np.all(s < 0) and np.all(u > 0) for s, u in flips)
    blind_teacher = any(np.all(u < 0) and np.all(s > 0) for s, u in flips)
    grams = []
    for start in starts:
        gram = start.gram
        signs = np.ones(len(gram))
        if blind_student:
            signs[-r:] = np.sign(np.sum(gram[t, -r:])) or 1.0
        if blind_teacher:
            signs[:t] = np.sign(np.trace(gram[:t, -r:] * signs[-r:])) or 1.0
        grams.append(signs[:, None] * gram * signs)
    return StartOverlaps(np.mean(grams, axis=0), starts[0].V)


@dataclass
class Paths:
    """Gaussian fields with a growing covariance, drawn one column at a time.

    The fields of columns b_1, b_2, ... in R^d are ``x_l . b/sqrt d``, with covariance
    ``sigma_l^2 b . b'/d``: a Cholesky factor that gains a row whenever a column is added.
    """

    model: Model
    rng: np.random.Generator
    noise: list[np.ndarray] = field(default_factory=list)
    rows: list[np.ndarray] = field(default_factory=list)

    def add(
        self, covariance: Float[np.ndarray, " seen+1"], mirrored: int
    ) -> Float[np.ndarray, "tokens paths"]:
        """The field of one more column, from its covariances with the earlier and itself.

        `mirrored` chooses the sign, of the teacher's or of the student's noise, that the
        antithetic images give to what is new in this column.
        """
        known = len(self.rows)
        row = np.zeros(known + 1)
        for k, earlier in enumerate(self.rows):
            if earlier[k] > 0:
                row[k] = (covariance[k] - row[:k] @ earlier[:k]) / earlier[k]
        left = covariance[known] - row[:known] @ row[:known]
        if left > NEW * max(covariance[known], 1e-300):
            row[known] = np.sqrt(left)
        self.rows.append(row)
        base = self.rng.standard_normal((self.model.length, 1, PATHS // len(ANTITHETIC_SIGNS)))
        images = np.asarray([image[mirrored] for image in ANTITHETIC_SIGNS])[None, :, None] * base
        self.noise.append(images.reshape(self.model.length, PATHS))
        total = np.tensordot(row, np.stack(self.noise), axes=1)
        return np.asarray(self.model.sigma)[:, None] * total


def predict(
    model: Model, alpha: float, start: StartOverlaps, iterations: int, damping: float, seed: int = 0
) -> list[dict[str, float]]:
    """Overlaps of Q^0, ..., Q^iterations: q, m and theta of token 1, as norms.

    And, but for the last, the weight of the jumps of the proximal map. Message passing takes the
    mean Jacobian for the response, which does not see them: its centres are Gaussian, and this
    prediction is right, up to an error of the order of that weight.
    """
    t, r, length = model.teacher_rank, model.student_rank, model.length
    rho = np.asarray(model.rho)[:, None, None]
    gram, V = start.gram, start.V
    size = gram.shape[0]
    place = np.arange(size)
    teacher, positions = place[:t], place[t : t + length]
    current = np.eye(size)[:, t + length :]

    paths = Paths(model, np.random.default_rng([seed, 5]))
    seen = np.eye(size)[:, :t]
    h = np.stack([paths.add(_column(gram, seen[:, : k + 1]), mirrored=1) for k in range(t)], axis=1)
    drawn = np.random.default_rng([seed, 6]).standard_normal((model.normals, PATHS))
    sentences = _sentences(model, jnp.asarray(h), jnp.asarray(drawn))
    forces: list[np.ndarray] = []
    tracks: list[ProxState] = []
    result = []
    for step in range(iterations + 1):
        interrupt.check()
        weight = current.T @ gram @ current
        means = gram[positions] @ current
        signal = current.T @ gram[:, teacher]
        now = {"q": rho[0] * weight, "m": means[0], "theta": rho[0] * signal}
        result.append({name: float(np.linalg.norm(part)) for name, part in now.items()})
        if step == iterations:
            break
        columns = []
        for k in range(r):
            seen = np.concatenate([seen, current[:, k : k + 1]], axis=1)
            columns.append(paths.add(_column(gram, seen), mirrored=0))
        fluctuation = np.stack(columns, axis=1)
        centre = means[..., None] + fluctuation
        centres = [jnp.asarray(block) for block in np.split(centre, len(sentences), axis=-1)]
        tracks = tracks or [fresh(block) for block in centres]
        asked = (centres, jnp.asarray(V), sentences, tracks, jnp.asarray(step))
        found = apply_force(model, *asked)
        tracks = [block.track for block in found]
        g = np.concatenate([block.g for block in found], axis=-1)
        mean = np.sum([block.response for block in found], axis=0) / PATHS
        response = np.sum(rho * mean, axis=0)
        A = np.asarray(bounded(jnp.asarray(-alpha * response), model.ridge))
        R = np.linalg.inv(float(model.ridge) * np.eye(r) + A)

        # Stein: sum_mu x^T g/sqrt d = Q* (dg/dh*)^T + Q (dg/dc)^T + noise, where the mean
        # derivatives follow from the correlations of g with the fields, jumps included.
        fields = np.concatenate([h, fluctuation], axis=1)
        joint = np.concatenate([seen[:, :t], current], axis=1)
        covariance = joint.T @ gram @ joint
        inverse = np.linalg.pinv(covariance, rcond=1e-8, hermitian=True)
        slopes = alpha * np.einsum("lip,ljp->ij", g, fields) / PATHS @ inverse
        result[-1]["jump_weight"] = _jump_weight(-slopes[:, t:], -alpha * response)
        drift = joint @ slopes.T + current @ A.T
        drift[positions] += alpha * g.mean(axis=2)

        # The noise of this iteration joins the basis, correlated with the earlier ones.
        forces.append(g)
        noise = [alpha * np.einsum("l,lip,ljp->ij", rho[:, 0, 0], g, old) / PATHS for old in forces]
        gram = _extend(gram, noise, size, r)
        drift, current, seen = (_pad(some, r) for some in (drift, current, seen))
        drift[-r:] += np.eye(r)
        current = (1 - damping) * drift @ R.T + damping * current
        V = (1 - damping) * rho * R + damping * V
    return result


def _jump_weight(by_parts: np.ndarray, smooth: np.ndarray) -> float:
    """Share of the response that jumps carry: what the mean Jacobian does not see."""
    jumps = float(np.linalg.norm(by_parts - smooth))
    return jumps / max(jumps + float(np.linalg.norm(smooth)), 1e-300)


def _column(gram: np.ndarray, columns: np.ndarray) -> Float[np.ndarray, " seen"]:
    """Covariances of the last column with all columns."""
    return np.asarray(columns.T @ gram @ columns[:, -1])


def _pad(coefficients: np.ndarray, r: int) -> np.ndarray:
    return np.concatenate([coefficients, np.zeros((r, coefficients.shape[1]))])


def _extend(gram: np.ndarray, noise: list[np.ndarray], fixed: int, r: int) -> np.ndarray:
    size = gram.shape[0]
    larger = np.zeros((size + r, size + r))
    larger[:size, :size] = gram
    for k, block in enumerate(noise):
        at = slice(fixed + k * r, fixed + (k + 1) * r)
        larger[size:, at] = block
        larger[at, size:] = block.T
    last = larger[size:, size:]
    larger[size:, size:] = (last + last.T) / 2
    return larger


@eqx.filter_jit
def _sentences(
    model: Model, h: Float[Array, "tokens t paths"], noise: Float[Array, "normals paths"]
) -> tuple[Sentences, ...]:
    """Losses of the paths as those of sentences: in the limit tokens are orthogonal."""
    target = vmap_points(model.label)(h, noise)
    form = target if model.loss is not None else vmap_points(partial(limit_form, model))(target)
    return cut(Sentences(form, jnp.ones(PATHS)))
