"""Losses at finite dimension: the known terms of order 1/d.

The theory is the limit of large d. At finite d the loss of one sentence,
``|T x - S (x + p)|^2/(2d)``, has more terms. Its mean at fixed projections ``u_l = (h*_l, h_l)`` of
the sentence on U = [Q*, Q], with ``G = U^T U/d`` and k = r + t, is

    E[|T x - S z|^2/d | u] = tr[(T-S) diag(rho) (T-S)^T] + (1/d) D(T, S),
    D = tr[(T-S) (u G^{-1} u^T - k diag(rho)) (T-S)^T]    lengths along the weights
        - 2 tr[(T-S) u G^{-1} (0, m)^T S^T]               tokens along the positions
        + tr[S P S^T]                                     positions in the values.

The free energy is stationary. At first order the training loss therefore changes by the mean of
these terms at the proximal points X of the limit. At the fields omega they are the terms of the
test error of a student with the overlaps of the limit:

    eps_t(d) = eps_t + (alpha/2d) E D(T, S(X)),      eps_g(d) = eps_g + (1/(L d)) E D(T, S(omega)).

The last term of D is by far the largest for positions that do not cancel. Two effects of order 1/d
are not included: the overlaps themselves differ from their limit, and the lengths and angles of
tokens vary from sentence to sentence.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dotphase.config import validation
from dotphase.config.formatting import LABELS, Description, Printable, format_value
from dotphase.model.definition import Model, refuse, refuse_spectrum
from dotphase.numerics.proximal_map import vmap_points
from dotphase.numerics.statistics import error_of_mean
from dotphase.runtime.precision import in_double_precision
from dotphase.theory.expectations import ProxStates, evaluator_of
from dotphase.theory.overlaps import Overlaps
from dotphase.theory.state_evolution import Fields, draw_fields, mean_of_scrambles

if TYPE_CHECKING:
    from dotphase.theory.solution import Solution

#: Largest log2 of the number of points over which the terms, which are smooth, are averaged.
MAX_LOG2_POINTS = 14
#: Calls of the proximal map; each of them searches for lower minima with another probe.
CALLS = 3
#: Names of the terms of D, in order.
TERMS = ("lengths", "cross", "positions")


@dataclass(frozen=True)
class AtDimension(Printable):
    """A solution at finite dimension: the limit and its known terms of order 1/d.

    Attributes
    ----------
    solution : the limit
    d : dimension of a token
    terms : terms of train_loss and test_error, times d: ``lengths``, ``cross``, ``positions``
    terms_stderr : quadrature standard errors of their sums

    Examples
    --------
    >>> solution = dp.solve(dp.positional_semantic(), alpha=2.0, log2_points=12)
    >>> finite = solution.at(d=200)
    >>> finite.train_loss > solution.train_loss
    True
    """

    solution: Solution = field(repr=False)
    d: int
    terms: dict[str, dict[str, float]]
    terms_stderr: dict[str, float]

    @property
    def train_loss(self) -> float:
        """Training loss per dimension."""
        return self.value("train_loss")

    @property
    def test_error(self) -> float:
        """Test error."""
        return self.value("test_error")

    @property
    def stderr(self) -> dict[str, float]:
        """Quadrature standard errors of both."""
        limit = self.solution.stderr
        return {
            name: float(np.hypot(limit[name], error / self.d))
            for name, error in self.terms_stderr.items()
        }

    def value(self, name: str) -> float:
        """A result by name at this dimension; only the losses differ from the limit."""
        limit = self.solution.value(name)
        return limit + sum(self.terms.get(name, {}).values()) / self.d

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, ready for JSON."""
        return {
            "d": self.d,
            "train_loss": self.train_loss,
            "test_error": self.test_error,
            "stderr": self.stderr,
            "terms": self.terms,
        }

    @property
    def description(self) -> Description:
        """Both losses and their terms."""
        rows = []
        for name, label in LABELS.items():
            parts = " ".join(f"{value:+.3g} ({what})" for what, value in self.terms[name].items())
            shown = format_value(self.value(name), self.stderr[name])
            rows.append((label, f"{shown} = limit + [{parts}]/d"))
        head = f"{self.solution.found} branch at alpha = {self.solution.alpha:g}, d = {self.d}"
        return Description(head, tuple(rows))


def is_known(model: Model) -> bool:
    """True for attention with the squared loss and white tokens, whose terms are known."""
    return model.plain and model.spectrum is None and not model.normals


@in_double_precision
def at_dimension(solution: Solution, d: int) -> AtDimension:
    """Losses of a solution at dimension d."""
    d = validation.integer("d", d, at_least=1)
    model, overlaps = solution.model, solution.overlaps
    refuse_spectrum(model, "terms of order 1/d")
    refuse(model, "the expansion in 1/d", "loss", "latent", "correlation", "noise")
    level = min(MAX_LOG2_POINTS, solution.log2_points)
    evaluator = evaluator_of(model)
    states: ProxStates = ()
    for call in range(CALLS):
        states = evaluator.expectations(overlaps, level, solution.seed, states, call).prox_states
    points = evaluator.blocks(overlaps, level, solution.seed)
    blocks = [
        _block(model, overlaps, block, state.x) for block, state in zip(points, states, strict=True)
    ]
    rows = np.mean([np.asarray(block) for block in blocks], axis=0)
    factors = {"train_loss": solution.alpha / 2, "test_error": 1 / model.length}
    terms, errors = {}, {}
    for index, (name, factor) in enumerate(factors.items()):
        each = factor * rows[:, index]
        terms[name] = dict(zip(TERMS, each.mean(axis=0).tolist(), strict=True))
        errors[name] = float(error_of_mean(each.sum(axis=1)))
    return AtDimension(solution, d, terms, errors)


@eqx.filter_jit
def _block(
    model: Model, overlaps: Overlaps, points: Float[Array, "dims points"], x: Float[Array, "..."]
) -> Float[Array, "scrambles 2 3"]:
    """Means over scrambles of the terms of D, at the proximal points and at the fields."""
    fields = draw_fields(model, overlaps, points)
    shape = (model.length, model.student_rank, -1)
    student = vmap_points(model.student)
    parts = [
        _terms(model, overlaps, fields, student(at.reshape(shape))) for at in (x, fields.omega)
    ]
    return mean_of_scrambles(jnp.stack(parts))


def _terms(
    model: Model,
    overlaps: Overlaps,
    fields: Fields,
    answer: Float[Array, "tokens tokens points"],
) -> Float[Array, "3 points"]:
    t, rho = model.teacher_rank, jnp.asarray(model.rho)
    means = jnp.asarray(overlaps.m)
    omega = fields.omega.reshape(model.length, model.student_rank, -1)
    u = jnp.concatenate([fields.h, omega - means[..., None]], axis=1)
    aligned, size = overlaps.theta[0] / rho[0], overlaps.q[0] / rho[0]
    gram = jnp.block([[jnp.eye(t), aligned.T], [aligned, size]])
    scaled = jnp.einsum("ij,kjp->kip", jnp.linalg.pinv(gram, hermitian=True), u)
    miss = fields.target - answer
    along = jnp.einsum("kip,lip->klp", u, scaled) - (u.shape[1] * jnp.diag(rho))[..., None]
    cross = jnp.einsum("kip,li->klp", scaled[:, t:], means)
    return jnp.stack(
        [
            jnp.einsum("ikp,klp,ilp->p", miss, along, miss),
            -2 * jnp.einsum("ikp,klp,ilp->p", miss, cross, answer),
            jnp.einsum("ikp,kl,ilp->p", answer, jnp.asarray(model.positions), answer),
        ]
    )
