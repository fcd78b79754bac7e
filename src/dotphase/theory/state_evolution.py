"""One step of state evolution: overlaps -> averages over the fields -> new overlaps.

The averages over Gaussian points are compiled (`force_averages`); the algebra that turns
them into conjugates and new overlaps acts on a handful of numbers and stays in NumPy. All
of it accepts leading axes, so that the same lines serve one point, a batch, or the
scrambles whose spread is the quadrature error.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from dotphase.model import Model
from dotphase.model.derivatives import loss_derivatives
from dotphase.numerics.linalg import dot, inverses, matrix_sqrt, matvec
from dotphase.numerics.proximal_map import ProximalProblem, ProxState, proximal_map, vmap_points
from dotphase.numerics.quadrature import N_SCRAMBLES
from dotphase.theory.overlaps import AnyArray, Conjugates, Overlaps, inverse


class Fields(NamedTuple):
    """Gaussian fields of one block of points; points lie on the last axis.

    Attributes
    ----------
    xi, y : standard normal
    h : the teacher's, without their means
    omega, mean : the student's, and their means
    target : labels
    loading : how much of each direction is in the means of the tokens; None where the directions
        are positions, one for each token
    """

    xi: Float[Array, "tokens r points"]
    y: Float[Array, "tokens t points"]
    h: Float[Array, "tokens t points"]
    omega: Float[Array, "dims points"]
    mean: Float[Array, "tokens r #points"]
    target: Any
    loading: Float[Array, "tokens directions points"] | None

    def along(self, force: Float[Array, "tokens r points"]) -> Float[Array, "directions r points"]:
        """Forces on the tokens as forces along the directions."""
        if self.loading is None:
            return force
        return jnp.einsum("ldp,lrp->drp", self.loading, force)

    def shift(self, m: Float[AnyArray, "directions r"]) -> Float[Array, "tokens r #points"]:
        """Means of the tokens' fields that overlaps with the directions make."""
        if self.loading is None:
            return jnp.asarray(m)[..., None]
        return jnp.einsum("ldp,dr->lrp", self.loading, jnp.asarray(m))


class Averages(NamedTuple):
    """Means over the Gaussian points.

    Attributes
    ----------
    g, gg, gy, gxi : of the force g_l, of g_l g_l^T, g_l y_l^T and g_l xi_l^T
    loss : ``E ell(X; T)`` at the proximal point
    moreau : mean of the minimum of the proximal objective
    test : ``E ell(omega; T)``, half of L times the test error; or the mean metric
    """

    g: Float[AnyArray, "... directions r"]
    gg: Float[AnyArray, "... tokens r r"]
    gy: Float[AnyArray, "... tokens r t"]
    gxi: Float[AnyArray, "... tokens r r"]
    loss: Float[AnyArray, "..."]
    moreau: Float[AnyArray, "..."]
    test: Float[AnyArray, "..."]


def draw_fields(model: Model, overlaps: Overlaps, points: Float[Array, "dims points"]) -> Fields:
    """Student's and teacher's fields from standard normal `points`.

    ``omega_l = m_l + q_l^{1/2} xi_l`` and
    ``h*_l = theta_l^T q_l^{-1/2} xi_l + (rho*_l - theta_l^T q_l^{-1} theta_l)^{1/2} y_l``.

    Correlated tokens are mixtures ``x = K x'`` of independent ones with the same scales: the fields
    are those of x', whose means are ``K^{-1}`` times the loadings.
    """
    cut = model.length * model.student_rank
    end = cut + model.length * model.teacher_rank
    xi = points[:cut].reshape(model.length, model.student_rank, -1)
    y = points[cut:end].reshape(model.length, model.teacher_rank, -1)
    z = points[end:]
    root = matrix_sqrt(overlaps.q)
    shared = inverses(root) @ overlaps.theta
    remaining = model.rho[:, None, None] * jnp.eye(model.teacher_rank)
    remaining = remaining - jnp.einsum("ljt,ljs->lts", shared, shared)
    h = apply_each(shared.swapaxes(1, 2), xi) + apply_each(matrix_sqrt(remaining), y)
    mixer, teacher_fields, loading = model.mixer, h, None
    if model.structured:
        loading = vmap_points(model.loading)(z)
        if mixer is not None:
            teacher_fields = jnp.einsum("lk,ktp->ltp", mixer, h)
            loading = jnp.einsum("lk,kdp->ldp", jnp.linalg.inv(mixer), loading)
    if model.latent is not None:
        latent = vmap_points(model.latent.draw)(z[model.noise :])
        overlaps_of_latent = model.latent.overlaps(model.teacher_rank)
        teacher_fields = teacher_fields + jnp.einsum("ljp,jt->ltp", latent, overlaps_of_latent)
    target = vmap_points(model.label)(teacher_fields, z)
    fields = Fields(xi, y, h, xi, xi, target, loading)
    mean = fields.shift(overlaps.m)
    omega = mean + apply_each(root, xi)
    return fields._replace(omega=omega.reshape(cut, -1), mean=mean)


def apply_each(
    matrices: Float[Array, "tokens i j"], vectors: Float[Array, "tokens j points"]
) -> Float[Array, "tokens i points"]:
    """One small matrix per token, on many vectors."""
    return jax.vmap(lambda matrix, batch: vmap_points(partial(matvec, matrix))(batch))(
        matrices, vectors
    )


def initial_prox_state(
    model: Model, overlaps: Overlaps, points: Float[Array, "dims points"]
) -> ProxState:
    """Initial state of the proximal map: its minimizers are omega itself."""
    return ProxState.initial(draw_fields(model, overlaps, points).omega)


def prox_problem(overlaps: Overlaps, fields: Fields) -> ProximalProblem:
    """The proximal problems that the overlaps pose at the given fields."""
    blocks = jax.scipy.linalg.block_diag
    precision, spread = blocks(*inverses(overlaps.V)), blocks(*matrix_sqrt(overlaps.V))
    return ProximalProblem(fields.omega, precision, spread, fields.target)


def force_averages(
    model: Model,
    overlaps: Overlaps,
    points: Float[Array, "dims scrambles*points"],
    prox_state: ProxState,
    call: Int[Array, ""],
) -> tuple[Averages, ProxState]:
    """Averages over one block of points, one row per scramble, and the next state of the prox."""
    values, prox_state = values_at_points(model, overlaps, points, prox_state, call)
    return jax.tree.map(mean_of_scrambles, values), prox_state


def values_at_points(
    model: Model,
    overlaps: Overlaps,
    points: Float[Array, "dims points"],
    prox_state: ProxState,
    call: Int[Array, ""],
) -> tuple[Averages, ProxState]:
    """Integrands of the averages at every point (last axis), and the next state of the prox."""
    fields = draw_fields(model, overlaps, points)
    problem = prox_problem(overlaps, fields)
    derivatives = loss_derivatives(model)
    prox_state = proximal_map(derivatives, problem, prox_state, call)

    shift = prox_state.x - fields.omega
    force = vmap_points(partial(matvec, problem.precision))(shift)
    loss = vmap_points(lambda x, t: derivatives(x, t).value)
    if model.metric is None:
        # One after the other in a loop, which is compiled once.
        both = jnp.stack([prox_state.x, fields.omega])
        at_x, test = jax.lax.map(lambda x: loss(x, fields.target), both)
    else:
        at_x, test = loss(prox_state.x, fields.target), metric_at_omega(model, fields)
    moreau = 0.5 * vmap_points(dot)(shift, force) + at_x
    force = force.reshape(model.length, model.student_rank, -1)

    values = Averages(
        g=fields.along(force),
        gg=force[:, :, None] * force[:, None],
        gy=force[:, :, None] * fields.y[:, None],
        gxi=force[:, :, None] * fields.xi[:, None],
        loss=at_x,
        moreau=moreau,
        test=test,
    )
    return values, prox_state


def metric_at_omega(model: Model, fields: Fields) -> Float[Array, " points"]:
    """The metric of the test error at every point."""
    omega = fields.omega.reshape(model.length, model.student_rank, -1)
    if model.mixer is not None:
        omega = jnp.einsum("lk,krp->lrp", model.mixer, omega)
    return vmap_points(model.test_loss)(omega, fields.target)


def mean_of_scrambles(
    values: Float[Array, "... scrambles*points"],
) -> Float[Array, "scrambles ..."]:
    """Mean of each scramble, as a product with ones: a plain reduction is not vectorised."""
    shape = values.shape[:-1]
    count = values.shape[-1] // N_SCRAMBLES
    means = values.reshape(-1, count) @ jnp.full(count, 1 / count)
    return jnp.moveaxis(means.reshape(*shape, N_SCRAMBLES), -1, 0)


def matrix_root(matrix: np.ndarray) -> np.ndarray:
    """Symmetric square root; NaN where the matrix is not positive semi-definite."""
    if matrix.shape[-1] == 1:
        return np.sqrt(matrix)
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.sqrt(values)[..., None, :]) @ vectors.swapaxes(-1, -2)


def transpose(matrix: AnyArray) -> np.ndarray:
    """Of the last two axes."""
    return np.asarray(matrix).swapaxes(-1, -2)


def remainder(model: Model, overlaps: Overlaps) -> Float[np.ndarray, "tokens t t"]:
    """Variance of the teacher's fields that the student's leave,
    ``rho*_l - theta_l^T q_l^{-1} theta_l``."""
    q, theta = np.asarray(overlaps.q), np.asarray(overlaps.theta)
    own = np.asarray(model.rho)[:, None, None] * np.eye(model.teacher_rank)
    return np.asarray(own - transpose(theta) @ inverse(q) @ theta)


def conjugates(model: Model, alpha: float, overlaps: Overlaps, averages: Averages) -> Conjugates:
    """Conjugate parameters from the averages of the force.

    ``Vhat_l = -alpha E[g_l xi_l^T] q_l^{-1/2} + thetahat_l theta_l^T q_l^{-1}``: integration
    by parts, which sees the jumps of the proximal map; its mean Jacobian would not.
    """
    q, theta = np.asarray(overlaps.q), np.asarray(overlaps.theta)
    q_inverse = inverse(q)
    thetahat = alpha * averages.gy @ inverse(matrix_root(remainder(model, overlaps)))
    response = -alpha * averages.gxi @ inverse(matrix_root(q))
    response = response + thetahat @ transpose(theta) @ q_inverse
    return Conjugates(
        qhat=alpha * averages.gg,
        mhat=alpha * averages.g,
        Vhat=(response + transpose(response)) / 2,
        thetahat=thetahat,
    )


# Every eigendirection i of the covariances has a resolvent R_i and a drive of its own; the overlaps
# average over them. White tokens are the case of a single eigenvalue sigma_l^2. Th_i is the drive
# along the teacher's columns, and c_j are the overlaps of direction j with these columns.


def resolvent(model: Model, hats: Conjugates) -> Float[np.ndarray, "... atoms r r"]:
    """``R_i = (ridge I + sum_l gamma_{l,i} Vhat_l)^{-1}``."""
    weight = np.einsum("la,...lij->...aij", model.eigenvalues, hats.Vhat)
    return inverse(float(model.ridge) * np.eye(model.student_rank) + weight)


def teacher_drive(model: Model, hats: Conjugates) -> Float[np.ndarray, "... atoms r t"]:
    """``Th_i = sum_l gamma_{l,i} thetahat_l``."""
    return np.asarray(np.einsum("la,...lit->...ait", model.eigenvalues, hats.thetahat))


def aligned_drive(model: Model, hats: Conjugates) -> Float[np.ndarray, "... atoms r t"]:
    """Source along the teacher's columns, ``Th_i + sum_j mhat_j c_j^T``.

    c_j are the overlaps of direction j with these columns.
    """
    if model.latent is None:
        return teacher_drive(model, hats)
    along = np.einsum("...jr,jt->...rt", hats.mhat, model.teacher_overlaps)
    return np.asarray(teacher_drive(model, hats) + along[..., None, :, :])


def weight_drive(model: Model, hats: Conjugates) -> Float[np.ndarray, "... atoms r r"]:
    """``sum_l gamma_{l,i} qhat_l + Th_i Th_i^T + sum_kl P_kl mhat_k mhat_l^T``."""
    noise = np.einsum("la,...lij->...aij", model.eigenvalues, hats.qhat)
    signal = teacher_drive(model, hats)
    position = np.einsum("kl,...ki,...lj->...ij", model.gram, hats.mhat, hats.mhat)
    drive = noise + signal @ transpose(signal) + position[..., None, :, :]
    if model.latent is None:
        return drive
    # Directions may be aligned with the teacher: sum_j Th c_j mhat_j^T and its transpose.
    mixed = np.einsum("...ait,jt,...jk->...aik", signal, model.teacher_overlaps, hats.mhat)
    return drive + mixed + transpose(mixed)


def weight_gram(model: Model, hats: Conjugates) -> Float[np.ndarray, "... atoms r r"]:
    """``W_i = R_i source_i R_i^T``, which is Q^T Q/d in the eigendirection i."""
    return gram(resolvent(model, hats), weight_drive(model, hats))


def gram(response: np.ndarray, drive: np.ndarray) -> np.ndarray:
    """``R source R^T``, symmetric to the last digit."""
    weight = response @ drive @ transpose(response)
    return np.asarray((weight + transpose(weight)) / 2)


def next_overlaps(model: Model, hats: Conjugates) -> Overlaps:
    """New overlaps from the conjugates.

    ``q_l = sum_i w_i gamma_{l,i} W_i``, ``V_l = sum_i w_i gamma_{l,i} R_i``,
    ``theta_l = sum_i w_i gamma_{l,i} R_i Th_i``, ``m_l = sum_i w_i R_i sum_k P_lk mhat_k``.
    The last one takes the positions to be spread evenly over the eigendirections.
    """
    response = resolvent(model, hats)
    weight = gram(response, weight_drive(model, hats))
    aligned = response @ aligned_drive(model, hats)
    q, V, theta = (per_token(model, each) for each in (weight, response, aligned))
    return Overlaps(q=q, m=mean_fields(model, response, hats), V=V, theta=theta)


def per_token(model: Model, each: Float[np.ndarray, "... atoms i j"]) -> np.ndarray:
    """``sum_i w_i gamma_{l,i} X_i`` for every token l."""
    return np.einsum("la,...aij->...lij", model.eigenvalues * model.eigenweights, each)


def mean_fields(
    model: Model, response: Float[np.ndarray, "... atoms r r"], hats: Conjugates
) -> Float[np.ndarray, "... tokens r"]:
    """``m_l = sum_i w_i R_i sum_k P_lk mhat_k``."""
    even = np.einsum("a,...aij->...ij", model.eigenweights, response)
    mean = np.einsum("...ij,lk,...kj->...li", even, model.gram, hats.mhat)
    if model.latent is None:
        return mean
    return mean + np.einsum(
        "...aij,...ajt,lt->...li", response, teacher_drive(model, hats), model.teacher_overlaps
    )


def training_energy(
    model: Model, alpha: float, overlaps: Overlaps, averages: Averages
) -> Float[np.ndarray, "..."]:
    """Training loss per dimension, ``alpha E[ell(X; T)] + (ridge/2) sum_i w_i tr W_i``."""
    if model.spectrum is None:
        weight = np.trace(overlaps.q[..., 0, :, :], axis1=-2, axis2=-1) / float(model.rho[0])
    else:
        # q_l weighs the W_i by their eigenvalues: their own mean has to be worked out.
        each = weight_gram(model, conjugates(model, alpha, overlaps, averages))
        weight = np.trace(each, axis1=-2, axis2=-1) @ model.eigenweights
    return alpha * averages.loss + 0.5 * float(model.ridge) * weight


def free_energy(
    model: Model, alpha: float, overlaps: Overlaps, averages: Averages
) -> Float[np.ndarray, "..."]:
    """The replica-symmetric free energy at zero temperature, stationary in all parameters.

    ``alpha E[M] + sum_l (m_l.mhat_l + tr theta_l^T thetahat_l + 1/2 tr V_l qhat_l
    - 1/2 tr q_l Vhat_l) - 1/2 sum_i w_i tr[source_i R_i]``, with M the minimum of the
    proximal objective.
    At a fixed point it equals `training_energy`.
    """
    hats = conjugates(model, alpha, overlaps, averages)
    paired = np.sum(overlaps.m * hats.mhat, axis=(-2, -1))
    paired = paired + np.sum(overlaps.theta * hats.thetahat, axis=(-3, -2, -1))
    paired = paired + 0.5 * np.sum(overlaps.V * hats.qhat, axis=(-3, -2, -1))
    paired = paired - 0.5 * np.sum(overlaps.q * hats.Vhat, axis=(-3, -2, -1))
    entropy = np.trace(weight_drive(model, hats) @ resolvent(model, hats), axis1=-2, axis2=-1)
    return alpha * averages.moreau + paired - 0.5 * entropy @ model.eigenweights


def test_error(model: Model, averages: Averages) -> Float[np.ndarray, "..."]:
    """``eps_g = (1/L) E tr[(T - S(omega)) diag(rho) (T - S(omega))^T]``, or the mean metric."""
    if model.loss is not None:
        return np.asarray(averages.test)
    return 2 * np.asarray(averages.test) / model.length
