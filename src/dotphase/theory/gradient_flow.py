"""Gradient flow on the population loss, in closed form for three overlaps.

With very many sentences, or a fresh one at every step, the training loss divided by alpha is
``d E(m, t, W) + (ridge/2 alpha) |Q|^2``, where ``E = E[ell(X; T(h*))]`` depends on the weights
through the overlaps alone,

    m = Q.p_1/sqrt d,   t = Q.Q*/d,   W = |Q|^2/d      (theta = sigma_1^2 t, q = sigma_1^2 W),

since ``X_l = h_l + u_l m`` (positions ``p_l = u_l p_1``) and h_l, h*_l are Gaussian with variances
``sigma_l^2 W`` and ``sigma_l^2`` and covariance ``sigma_l^2 t``. Derivatives of a Gaussian average
in its covariance are averages of second derivatives (Stein's lemma); with g_l = d ell/dX_l

    E_m = sum_l u_l E[g_l],
    E_W = 1/2 sum_l sigma_l^2 E[dg_l/dX_l],
    E_t = sum_l sigma_l^2 E[dg_l/dh*_l] = sum_l E[g_l h*_l] - 2 t E_W.

The gradient is then ``2 E_W Q + E_t Q* + sqrt(d) E_m p_1/P_11`` in the span of Q, Q* and p_1, and
gradient flow, with ``k = 2 E_W + ridge/alpha`` and Q* orthogonal to the positions, is

    dm/dtau = -k m - P_11 E_m,
    dt/dtau = -k t - E_t,
    dW/dtau = -2 (k W + t E_t + m E_m).

One unit of tau is one unit of (step size x steps x alpha). The part of Q outside the span of Q* and
p_1 obeys ``dQ/dtau = -k Q``: a student without such a part, ``W = t^2 + m^2/P_11``, never gets one.
On this plane the flow is one of two variables, and k is the rate at which others approach it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.integrate import solve_ivp
from scipy.optimize import root

from dotphase.config import validation
from dotphase.errors import InvalidInput
from dotphase.finite_d.test_error import quadrature
from dotphase.model import Model
from dotphase.model.derivatives import loss_derivatives
from dotphase.numerics.proximal_map import vmap_points
from dotphase.numerics.quadrature import Rule
from dotphase.runtime.precision import in_double_precision
from dotphase.storage.results import Result
from dotphase.theory.plane import Plane

#: Relative and absolute tolerance of the integration in time.
RTOL, ATOL = 1e-5, 1e-8
#: Nodes of the Gauss-Hermite rule in each direction: relative errors of about 1e-5.
ORDER = 10
#: Step of the finite differences for the stability of a fixed point.
STEP = 1e-4
#: Distance below which two fixed points are the same.
SAME = 1e-3

Numbers = float | Sequence[float] | Float[np.ndarray, " starts"]
State = Float[np.ndarray, "3 starts"]


@dataclass(frozen=True, eq=False, repr=False)
class Flow(Result):
    """Trajectories of the overlaps.

    Attributes
    ----------
    model, alpha : the model and its sample complexity, which enters as ridge/alpha only
    times : tau, step size x steps x alpha
    m, theta, q : overlaps of token 1
    loss : E[ell] + (ridge/2 alpha) W

    Examples
    --------
    >>> path = dp.flow.follow(dp.positional_semantic(), 0.1, 0.03, 0.06, [0.0, 10.0])
    >>> path.loss[-1] < path.loss[0]
    array([ True])
    """

    dimensions: ClassVar = {"times": ("times",)} | dict.fromkeys(
        ("m", "theta", "q", "loss"), ("times", "start")
    )

    model: Model
    alpha: float
    times: Float[np.ndarray, " times"]
    m: Float[np.ndarray, "times starts"]
    theta: Float[np.ndarray, "times starts"]
    q: Float[np.ndarray, "times starts"]
    loss: Float[np.ndarray, "times starts"]


@dataclass(frozen=True)
class FlowPoint:
    """A fixed point of the flow in the plane of Q* and p_1.

    Attributes
    ----------
    m, theta, q : overlaps of token 1
    loss : as in `Flow`
    rates : real parts of the eigenvalues of the linearized flow, the two of the plane first, then
        -k, of the directions outside; all negative at a minimum

    Examples
    --------
    >>> points = dp.flow.fixed_points(dp.positional_semantic(), starts=2)
    >>> len(points[0].rates)
    3
    """

    m: float
    theta: float
    q: float
    loss: float
    rates: tuple[float, float, float]

    @property
    def stable(self) -> bool:
        """True if the flow converges to it from all nearby points."""
        return max(self.rates) < 0


@in_double_precision
def population_flow(
    model: Model,
    m: Numbers,
    theta: Numbers,
    q: Numbers,
    times: Sequence[float] | Float[np.ndarray, " times"],
    *,
    alpha: float = np.inf,
) -> Flow:
    """Integrate gradient flow on the population loss.

    Parameters
    ----------
    model : Model
        Student and teacher of rank one, positional Gram matrix of rank one.
    m, theta, q : float or sequences of equal length
        Initial overlaps of token 1, of one or many trajectories, with
        ``q >= theta^2/sigma_1^2 + sigma_1^2 m^2/P_11``.
    times : sequence of float
        Increasing times tau of the results; the flow starts at 0.
    alpha : float
        Weight of the data against the ridge; infinite by default, for no ridge.

    Examples
    --------
    >>> path = dp.flow.follow(dp.positional_semantic(), 0.1, 0.03, 0.06, [0.0, 10.0])
    >>> path.m.shape
    (2, 1)
    """
    field = _Field(model, alpha)
    clock = validation.grid("times", times)
    if clock[0] < 0 or clock[-1] <= 0:
        raise InvalidInput("times", times, "must be >= 0, the last one > 0")
    initial = field.state(m, theta, q)

    def speed(_: float, flat: np.ndarray) -> np.ndarray:
        return field.velocity(flat.reshape(3, -1)).ravel()

    span = (0.0, float(clock[-1]))
    solution = solve_ivp(speed, span, initial.ravel(), t_eval=clock, rtol=RTOL, atol=ATOL)
    if not solution.success or not np.all(np.isfinite(solution.y)):
        raise RuntimeError(f"the flow could not be integrated: {solution.message}")
    path = solution.y.reshape(3, -1, clock.size).swapaxes(1, 2)
    loss = np.stack([field.loss(path[:, k]) for k in range(clock.size)])
    rho = field.rho
    return Flow(model, field.alpha, clock, path[0], rho * path[1], rho * path[2], loss)


@in_double_precision
def flow_field(
    model: Model, m: Numbers, theta: Numbers, *, alpha: float = np.inf
) -> tuple[Float[np.ndarray, "rows columns"], ...]:
    """Velocities on the plane of Q* and p_1, where q is as small as m and theta allow.

    Parameters
    ----------
    model, alpha
        As for `population_flow`.
    m, theta : sequences of float
        Columns and rows of the grid.

    Returns
    -------
    dm/dtau, dtheta/dtau, loss, k : arrays of shape (len(theta), len(m))
        k is the rate at which students outside the plane approach it; negative if they leave it.

    Examples
    --------
    >>> speeds = dp.flow.field(dp.positional_semantic(), [0.0, 0.2], [0.0, 0.1])
    >>> speeds[0].shape
    (2, 2)
    """
    field = _Field(model, alpha)
    grid = np.meshgrid(np.atleast_1d(m), np.atleast_1d(theta) / field.rho)
    state = field.on_plane(np.stack([part.ravel() for part in grid]))
    speed, loss, k = field.velocity(state), field.loss(state), field.transverse(state)
    parts = (speed[0], field.rho * speed[1], loss, k)
    return tuple(part.reshape(grid[0].shape) for part in parts)


@in_double_precision
def flow_fixed_points(
    model: Model, *, alpha: float = np.inf, reach: float = 1.2, starts: int = 5
) -> list[FlowPoint]:
    """Fixed points of the flow in the quadrant m, theta >= 0 of the plane, the lowest first.

    Parameters
    ----------
    model, alpha
        As for `population_flow`.
    reach : float
        Roots are searched from a grid over ``0 <= m, theta/sigma_1^2 <= reach``.
    starts : int
        Number of grid points in each direction.

    Examples
    --------
    >>> points = dp.flow.fixed_points(dp.positional_semantic(), starts=2)
    >>> any(point.stable for point in points)
    True
    """
    field = _Field(model, alpha)
    points: list[FlowPoint] = []
    axis = np.linspace(0, validation.number("reach", reach, above=0), starts)
    for initial in product(axis, axis):
        solution = root(lambda x: field.plane_velocity(x[:, None])[:, 0], initial, tol=1e-11)
        in_plane = np.abs(solution.x)
        in_plane[in_plane < 1e-7] = 0.0
        if not solution.success or np.any(in_plane > reach):
            continue
        new = field.point(in_plane)
        if all(abs(new.m - old.m) + abs(new.theta - old.theta) > SAME for old in points):
            points.append(new)
    return sorted(points, key=lambda point: point.loss)


class _Field:
    """The flow of one model; states are columns (m, t, W)."""

    def __init__(self, model: Model, alpha: float) -> None:
        self.plane = Plane.of(model)
        self.alpha = float(alpha) if alpha == np.inf else validation.number("alpha", alpha, above=0)
        self.model, self.rho, self.length = model, self.plane.rho, self.plane.length
        self.pull = float(model.ridge) / self.alpha
        self.rule = quadrature(model, ORDER)

    def state(self, m: Numbers, theta: Numbers, q: Numbers) -> State:
        """Checked overlaps as a state."""
        refusal = InvalidInput("m, theta, q", (m, theta, q), "must be finite and of equal length")
        try:
            arrays = [np.atleast_1d(np.asarray(part, np.float64)) for part in (m, theta, q)]
            parts = np.stack(np.broadcast_arrays(*arrays))
        except (TypeError, ValueError):
            raise refusal from None
        if parts.ndim != 2 or not np.all(np.isfinite(parts)):
            raise refusal
        state = np.stack([parts[0], parts[1] / self.rho, parts[2] / self.rho])
        least = self.on_plane(state[:2])[2]
        if np.any(state[2] < least * (1 - 1e-9)):
            worst = int(np.argmin(state[2] - least))
            raise InvalidInput(
                "q", float(parts[2][worst]),
                f"must be >= {self.rho * least[worst]:g} for these m and theta",
            )  # fmt: skip
        return state

    def on_plane(self, in_plane: Float[np.ndarray, "2 starts"]) -> State:
        """The state in the plane of Q* and p_1 with these m and t."""
        return np.stack([*in_plane, self.plane.weight(*in_plane)])

    def slopes(self, state: State) -> Float[np.ndarray, "4 starts"]:
        """E, E_m, E_t and E_W."""
        # One state at a time, so that the function is compiled once for any number of them.
        columns = [_slopes(self.model, self.plane.pattern, self.rule, column) for column in state.T]
        return np.stack([np.asarray(column) for column in columns], axis=1)

    def velocity(self, state: State) -> State:
        """d(m, t, W)/dtau."""
        _, by_m, by_t, by_w = self.slopes(state)
        m, t, w = state
        k = 2 * by_w + self.pull
        speed = -k * m - self.length * by_m, -k * t - by_t, -2 * (k * w + t * by_t + m * by_m)
        return np.stack(speed)

    def plane_velocity(
        self, in_plane: Float[np.ndarray, "2 starts"]
    ) -> Float[np.ndarray, "2 starts"]:
        """d(m, t)/dtau in the plane."""
        return self.velocity(self.on_plane(in_plane))[:2]

    def transverse(self, state: State) -> Float[np.ndarray, " starts"]:
        """k, the rate at which the part of Q outside the plane decays."""
        return 2 * self.slopes(state)[3] + self.pull

    def loss(self, state: State) -> Float[np.ndarray, " starts"]:
        """E[ell] + (ridge/2 alpha) W."""
        return self.slopes(state)[0] + self.pull / 2 * state[2]

    def point(self, in_plane: Float[np.ndarray, " 2"]) -> FlowPoint:
        """A fixed point with its stability."""
        shifts = in_plane[:, None] + STEP * np.array([[1, -1, 0, 0], [0, 0, 1, -1]])
        speed = self.plane_velocity(shifts)
        jacobian = (speed[:, ::2] - speed[:, 1::2]) / (2 * STEP)
        state = self.on_plane(in_plane[:, None])
        rates = sorted(np.linalg.eigvals(jacobian).real.tolist(), reverse=True)
        return FlowPoint(
            m=float(in_plane[0]),
            theta=float(self.rho * in_plane[1]),
            q=float(self.rho * state[2, 0]),
            loss=float(self.loss(state)[0]),
            rates=(rates[0], rates[1], -float(self.transverse(state)[0])),
        )


@eqx.filter_jit
def _slopes(
    model: Model,
    pattern: Float[Array | np.ndarray, " tokens"],
    rule: Rule,
    state: Float[Array | np.ndarray, " 3"],
) -> Float[Array, " 4"]:
    """E, E_m, E_t and E_W at one state."""
    sigma = jnp.asarray(model.sigma)[:, None]
    y, xi = jnp.asarray(rule.points).reshape(2, model.length, -1)
    h = sigma * y
    target = vmap_points(model.teacher)(h[:, None])
    derivatives = vmap_points(loss_derivatives(model))
    weights = jnp.asarray(rule.weights)

    m, t, w = state
    noise = jnp.sqrt(jnp.maximum(w - t**2, 0.0)) * sigma * xi
    value, slopes, hessian = derivatives(t * h + noise + m * pattern[:, None], target)
    gradient = jnp.stack(list(slopes))
    lift = jnp.sum(gradient * h, axis=0) @ weights
    bend = jnp.stack([hessian[l][l] for l in range(model.length)]) @ weights
    by_w = 0.5 * (sigma[:, 0] ** 2 @ bend)
    return jnp.stack([value @ weights, pattern @ (gradient @ weights), lift - 2 * t * by_w, by_w])
