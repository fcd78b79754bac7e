"""One step of replica symmetry breaking (1RSB) at zero temperature: its equations.

Where the training loss has many minima, two of them have a smaller overlap than replica
symmetry knows. One step of breaking has clusters of minima: overlaps ``q1`` within and ``q0``
between them, and the Parisi parameter y, which weighs a cluster of minima with training loss e by
``exp(-y d e)``. With fields

    omega_l = m_l + q0_l^{1/2} xi_l + (q1_l - q0_l)^{1/2} eta_l,

the teacher's field from xi as in `dotphase.theory.state_evolution` with q0, M the minimum of the
proximal objective, g its force and < > the average over eta with weight ``exp(-y M)``:

    qhat1_l = alpha E<g_l g_l^T>,   qhat0_l = alpha E[<g_l><g_l>^T],   mhat, thetahat from <g>,
    Vs_l q1_l = -alpha E<g_l (omega_l - m_l)^T> + thetahat_l theta_l^T + y qhat0_l (q1_l - q0_l),
    Vhat_l = Vs_l + y (qhat1_l - qhat0_l),

and, for every eigendirection i of the covariances (a single one, gamma_l = sigma_l^2, for white
tokens), with ``D_i = sum_l gamma_{l,i} (qhat1_l - qhat0_l)``,

    R_i = (ridge + sum_l gamma_{l,i} Vhat_l)^{-1},   R'_i = (ridge + sum_l gamma_{l,i} Vs_l)^{-1},
    W0_i = R'_i source_i R'_i,   W1_i = W0_i + R_i D_i R'_i,
    q0 from W0, q1 from W1, V from R, theta from R'_i Th_i, m_l = mean_i R'_i sum_k P_lk mhat_k.

(Given the disorder of its cluster, the weights minimise ``w R_i^{-1} w/2 - b w`` with Gaussian b;
R' is what the weight ``exp(y b R b/2)`` on the part of b inside a cluster makes of R.)
All of it is matrices of the student's rank. ``q1 = q0`` or ``y = 0`` is replica symmetry with
``q = q1``.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from dotphase.model import Model
from dotphase.model.derivatives import loss_derivatives
from dotphase.numerics.linalg import dot, matrix_sqrt, matvec
from dotphase.numerics.proximal_map import ProxState, proximal_map, vmap_points
from dotphase.numerics.quadrature import Rule
from dotphase.theory.overlaps import AnyArray, Conjugates, Overlaps
from dotphase.theory.state_evolution import (
    Fields,
    apply_each,
    draw_fields,
    gram,
    matrix_root,
    mean_fields,
    mean_of_scrambles,
    metric_at_omega,
    per_token,
    prox_problem,
    remainder,
    resolvent,
    teacher_drive,
    transpose,
    weight_drive,
)


class BrokenOverlaps(NamedTuple):
    """Order parameters with one step of replica symmetry breaking, one entry per token.

    Attributes
    ----------
    q0, q1 : (L, r, r) overlaps of two minima, of different clusters and of the same
    m, V, theta : as in `dotphase.Overlaps`
    parisi : y

    Examples
    --------
    >>> dp.results.BrokenOverlaps._fields[:2]
    ('q0', 'q1')
    """

    q0: Float[AnyArray, "tokens r r"]
    q1: Float[AnyArray, "tokens r r"]
    m: Float[AnyArray, "tokens r"]
    V: Float[AnyArray, "tokens r r"]
    theta: Float[AnyArray, "tokens r t"]
    parisi: Float[AnyArray, ""]

    @property
    def between(self) -> Overlaps:
        """The overlaps as those of a student that two clusters have in common."""
        return Overlaps(q=self.q0, m=self.m, V=self.V, theta=self.theta)

    @property
    def within(self) -> Overlaps:
        """The overlaps of one minimum."""
        return Overlaps(q=self.q1, m=self.m, V=self.V, theta=self.theta)


class BrokenAverages(NamedTuple):
    """Means over the Gaussian points; < > is the weighted average inside a cluster.

    Attributes
    ----------
    g, gy, gw : of <g_l>, <g_l> y_l^T and <g_l (omega_l - m_l)^T>
    gg, apart : of <g_l g_l^T>, and of <g_l><g_l>^T
    log_weight : ``E log E_eta exp(-y M)``
    moreau, loss : of <M> and <ell>
    test : ``E ell(omega; T)`` for a new sentence, without weight
    """

    g: Float[AnyArray, "... tokens r"]
    gg: Float[AnyArray, "... tokens r r"]
    apart: Float[AnyArray, "... tokens r r"]
    gy: Float[AnyArray, "... tokens r t"]
    gw: Float[AnyArray, "... tokens r r"]
    log_weight: Float[AnyArray, "..."]
    moreau: Float[AnyArray, "..."]
    loss: Float[AnyArray, "..."]
    test: Float[AnyArray, "..."]


class BrokenConjugates(NamedTuple):
    """Conjugate parameters: `within` has (qhat1, Vhat), `between` (qhat0, Vs)."""

    within: Conjugates
    between: Conjugates


class Clusters(NamedTuple):
    """State carried from call to call.

    Attributes
    ----------
    prox_state : state of the proximal map at all inner points of all outer ones
    center : center of the inner points of each outer one
    """

    prox_state: ProxState
    center: Float[Array, "dims points"]


def initial_clusters(
    model: Model,
    overlaps: BrokenOverlaps,
    points: Float[Array, "dims points"],
    rule: Rule,
) -> Clusters:
    """Initial state of the averages: minimizers at omega, clusters around zero."""
    fields = draw_fields(model, overlaps.between, points)
    center = jnp.zeros_like(fields.omega)
    omega = _inner_fields(overlaps, fields, center[..., None] + rule.points[:, None])
    return Clusters(ProxState.initial(omega), center)


def _inner_fields(
    overlaps: BrokenOverlaps, fields: Fields, eta: Float[Array, "dims points inner"]
) -> Float[Array, "dims points*inner"]:
    """``omega`` of all inner points of all outer ones."""
    root = jax.scipy.linalg.block_diag(*matrix_sqrt(overlaps.q1 - overlaps.q0))
    return (fields.omega[..., None] + jnp.einsum("ij,j...->i...", root, eta)).reshape(len(root), -1)


def cluster_averages(
    model: Model,
    overlaps: BrokenOverlaps,
    points: Float[Array, "dims scrambles*points"],
    rule: Rule,
    clusters: Clusters,
    call: Int[Array, ""],
) -> tuple[BrokenAverages, Clusters]:
    """Averages over one block of outer points, one row per scramble.

    The inner points lie around the centre c of each outer one, where the weight is: eta = c + z
    with z from a rule for standard normal variables, and ``exp(-y M - c.z - c^2/2)`` its weight.
    Integration by parts gives the mean of eta, ``y (q1 - q0)^{1/2} <g>``, which is the centre of
    the next call.
    """
    inner, share = map(jnp.asarray, rule)
    length, r = model.length, model.student_rank
    outer, count = points.shape[-1], inner.shape[-1]
    fields = draw_fields(model, overlaps.between, points)
    eta = clusters.center[..., None] + inner[:, None]
    omega = _inner_fields(overlaps, fields, eta)
    target = jax.tree.map(lambda leaf: jnp.repeat(leaf, count, axis=-1), fields.target)
    problem = prox_problem(overlaps.within, fields._replace(omega=omega, target=target))
    derivatives = loss_derivatives(model)
    prox_state = proximal_map(derivatives, problem, clusters.prox_state, call)

    shift = prox_state.x - omega
    force = vmap_points(partial(matvec, problem.precision))(shift)
    loss = vmap_points(lambda x, t: derivatives(x, t).value)
    at_x = loss(prox_state.x, target)
    moreau = (0.5 * vmap_points(dot)(shift, force) + at_x).reshape(outer, count)
    tilt = jnp.einsum("in,ik->nk", clusters.center, inner)
    tilt = jnp.log(share) - tilt - 0.5 * jnp.sum(clusters.center**2, axis=0)[:, None]
    exponent = tilt - overlaps.parisi * moreau
    log_weight = jax.nn.logsumexp(exponent, axis=1)
    weight = jnp.exp(exponent - log_weight[:, None])

    def inside(values: Array) -> Array:
        return jnp.sum(values.reshape(*values.shape[:-1], outer, count) * weight, axis=-1)

    force = force.reshape(length, r, -1)
    g = inside(force)
    deviation = omega.reshape(length, r, -1) - jnp.asarray(overlaps.m)[..., None]
    new_fields = fields._replace(omega=omega, target=target)
    metric = loss(omega, target) if model.metric is None else metric_at_omega(model, new_fields)
    values = BrokenAverages(
        g=g,
        gg=inside(force[:, :, None] * force[:, None]),
        apart=g[:, :, None] * g[:, None],
        gy=g[:, :, None] * fields.y[:, None],
        gw=inside(force[:, :, None] * deviation[:, None]),
        log_weight=log_weight,
        moreau=jnp.sum(moreau * weight, axis=1),
        loss=inside(at_x),
        test=jnp.sum(metric.reshape(outer, count) * jnp.exp(tilt), axis=1),
    )
    root = matrix_sqrt(overlaps.q1 - overlaps.q0)
    center = jnp.asarray(overlaps.parisi) * apply_each(root, g).reshape(length * r, outer)
    return jax.tree.map(mean_of_scrambles, values), Clusters(prox_state, center)


def broken_conjugates(
    model: Model, alpha: float, overlaps: BrokenOverlaps, averages: BrokenAverages
) -> BrokenConjugates:
    """Conjugate parameters from the averages.

    Integration by parts gives Vs in two ways: in xi, as
    ``-alpha E[<g> xi^T] q0^{-1/2} + thetahat theta^T q0^{-1}``, and in eta, as
    ``y qhat0 - alpha E<g eta^T> (q1 - q0)^{-1/2}``. Both, weighed by q0 and q1 - q0, make the
    formula above: it has the least noise, and is that of replica symmetry at ``y = 0``.
    """
    q0, q1, theta = (np.asarray(part) for part in (overlaps.q0, overlaps.q1, overlaps.theta))
    remaining = remainder(model, overlaps.between)
    thetahat = alpha * averages.gy @ np.linalg.inv(matrix_root(remaining))
    qhat1, qhat0 = alpha * np.asarray(averages.gg), alpha * np.asarray(averages.apart)
    y = float(overlaps.parisi)
    response = -alpha * averages.gw + thetahat @ transpose(theta) + y * qhat0 @ (q1 - q0)
    response = response @ np.linalg.inv(q1)
    between = Conjugates(
        qhat=qhat0,
        mhat=alpha * averages.g,
        Vhat=(response + transpose(response)) / 2,
        thetahat=thetahat,
    )
    Vhat = between.Vhat + y * (qhat1 - qhat0)
    return BrokenConjugates(between._replace(qhat=qhat1, Vhat=Vhat), between)


def next_broken(model: Model, hats: BrokenConjugates, parisi: float) -> BrokenOverlaps:
    """New overlaps from the conjugates."""
    inner, outer = resolvent(model, hats.within), resolvent(model, hats.between)
    common = gram(outer, weight_drive(model, hats.between))
    own = inner @ _noise_inside(model, hats) @ outer
    q0, more = per_token(model, common), per_token(model, (own + transpose(own)) / 2)
    return BrokenOverlaps(
        q0=q0,
        q1=q0 + more,
        m=mean_fields(model, outer, hats.between),
        V=per_token(model, inner),
        theta=per_token(model, outer @ teacher_drive(model, hats.between)),
        parisi=np.asarray(parisi),
    )


def _noise_inside(model: Model, hats: BrokenConjugates) -> Float[np.ndarray, "... atoms r r"]:
    """``D_i = sum_l gamma_{l,i} (qhat1_l - qhat0_l)``."""
    gap = hats.within.qhat - hats.between.qhat
    return np.asarray(np.einsum("la,...lij->...aij", model.eigenvalues, gap))


def broken_energy(
    model: Model, alpha: float, overlaps: BrokenOverlaps, averages: BrokenAverages
) -> tuple[Float[np.ndarray, "..."], Float[np.ndarray, "..."]]:
    """The free energy F(y), stationary in all parameters but y, and ``y^2 dF/dy``.

    ``F = -alpha/y E log E_eta exp(-y M) + sum_l (m_l.mhat_l + tr theta_l^T thetahat_l)
    + 1/2 sum_l tr[V_l qhat1_l - q1_l Vhat_l + y (q1_l qhat1_l - q0_l qhat0_l)]
    - 1/2 sum_i w_i tr[source_i R'_i] + 1/(2 y) sum_i w_i log det(1 - y D_i R_i)``.

    Its largest value over y is the lowest training loss. ``y^2 dF/dy`` is the complexity: the log,
    per dimension, of the number of minima with training loss ``d(y F)/dy``. Only what
    depends on y explicitly counts, because F is stationary in the rest.
    """
    y = float(overlaps.parisi)
    hats = broken_conjugates(model, alpha, overlaps, averages)
    within, between = hats
    inner, outer = resolvent(model, within), resolvent(model, between)
    noise, drive = _noise_inside(model, hats), weight_drive(model, between)
    share = model.eigenweights

    def trace(one: AnyArray, other: AnyArray) -> np.ndarray:
        return np.einsum("...aij,...aji->...a", one, other)

    # As y goes to zero, log E exp(-y M) and log det(1 - y D R) over y become these.
    mean_log, spread = -averages.moreau, -trace(noise, inner) @ share
    if y > 0:
        unit = np.eye(model.student_rank)
        mean_log = averages.log_weight / y
        spread = np.linalg.slogdet(unit - y * noise @ inner)[1] @ share / y
    tokens = np.sum(trace(overlaps.q1, within.qhat) - trace(overlaps.q0, between.qhat), axis=-1)
    paired = np.sum(overlaps.m * between.mhat, axis=(-2, -1))
    paired = paired + np.sum(overlaps.theta * between.thetahat, axis=(-3, -2, -1))
    paired = paired + 0.5 * np.sum(
        trace(overlaps.V, within.qhat) - trace(overlaps.q1, within.Vhat), axis=-1
    )
    energy = (
        -alpha * mean_log
        + paired
        + 0.5 * y * tokens
        - 0.5 * trace(drive, outer) @ share
        + 0.5 * spread
    )
    common = gram(outer, drive)
    complexity = (
        alpha * y * (mean_log + averages.moreau)
        + 0.5 * y**2 * (tokens - trace(common, noise) @ share)
        - 0.5 * y * spread
        - 0.5 * y * trace(outer, noise) @ share
    )
    return energy, complexity
