"""Initial weights from the name of a start, from prescribed overlaps, or from a function."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dotphase.config import validation
from dotphase.errors import InvalidInput
from dotphase.finite_d.datasets import Positions, TeacherWeights
from dotphase.finite_d.initializers import INITIALIZERS
from dotphase.finite_d.loss import Weights
from dotphase.model import Model
from dotphase.model.untied import is_untied

#: Start as a function: ``(key, teacher_weights, positions) -> Q``.
StartFunction = Callable[[Array, TeacherWeights, Positions], Weights]

Scale = Float[Array, ""] | Float[np.ndarray, ""]

#: Default standard deviation of random entries.
DEFAULT_SCALE = 0.1


class StartComponents(NamedTuple):
    """Components of initial weights in the limit of large d, by column."""

    theta: Float[np.ndarray, "r t"]  #: ``Q^T Q*/d``
    m: Float[np.ndarray, "r tokens"]  #: ``Q^T p_l/sqrt d`` for every token
    #: Gram matrix over d of the component orthogonal to Q* and to the positions
    orthogonal: Float[np.ndarray, "r r"]

    def gram(self, model: Model) -> Float[np.ndarray, "r r"]:
        """Return ``Q^T Q/d`` of the weights."""
        modes = self.m @ np.linalg.pinv(position_modes(model)).T
        return np.asarray(self.theta @ self.theta.T + modes @ modes.T + self.orthogonal)


@dataclass(frozen=True)
class Initializer:
    """Start with a name, for any number of columns."""

    #: ``(key, teacher_weights, positions, columns, scale) -> Q``
    weights: Callable[[Array, Array, Array, int, Scale], Weights]
    #: ``(model, columns) -> `` reason why the start does not suit this model, or None
    objection: Callable[[Model, int], str | None] = lambda model, columns: None
    #: ``(model, columns, scale) -> StartComponents`` for large d; None if it is unknown
    limit: Callable[[Model, int, float], StartComponents] | None = None
    #: ``model -> `` column of the student that gets the first column of the weights; the others
    #: follow cyclically
    first_column: Callable[[Model], int] = lambda model: 0


def require_positions(model: Model, columns: int) -> str | None:
    """Return an objection to models whose positions are all zero."""
    if np.any(np.asarray(model.gram)):
        return None
    return "needs a model whose positions are not all zero"


class NamedInitializer(eqx.Module):
    """Named start as a function; another scale needs no recompilation."""

    start: Initializer = eqx.field(static=True)
    columns: int = eqx.field(static=True)
    copies: int = eqx.field(static=True)
    scale: Scale
    first_column: int = eqx.field(static=True, default=0)

    def __call__(self, key: Array, teacher_weights: Array, positions: Array) -> Weights:
        columns = self.columns // self.copies
        weights = self.start.weights(key, teacher_weights, positions, columns, self.scale)
        weights = jnp.roll(weights, self.first_column, axis=1) if self.first_column else weights
        return jnp.concatenate([weights] * self.copies, axis=1)


class PrescribedStart(eqx.Module):
    """Start with prescribed overlaps of token 1, made by `start_from`."""

    #: arguments of `start_from`; q is None for the smallest that theta and m allow
    theta: Any
    m: Any
    q: Any

    def components(self, model: Model) -> StartComponents:
        """Return the components of such weights; `InvalidInput` if there are none."""
        r, t, rho = model.student_rank, model.teacher_rank, float(model.rho[0])
        theta = _as_array("theta", self.theta, (r, t)) / rho
        modes = position_modes(model)
        m = _all_tokens(model, self.m)
        if not np.allclose(m @ np.linalg.pinv(modes).T @ modes.T, m, atol=1e-9):
            raise InvalidInput("m", self.m, "must be overlaps that some weights have with p_l")
        smallest = StartComponents(theta, m, np.zeros((r, r)))
        if self.q is None:
            return smallest
        lower_bound = smallest.gram(model)
        gram = _as_array("q", self.q, (r, r)) / rho
        orthogonal = (gram + gram.T) / 2 - lower_bound
        margin = float(np.linalg.eigvalsh(orthogonal)[0])
        if margin < -1e-9 * max(1.0, float(np.abs(lower_bound).max())):
            bound = f">= {rho * lower_bound[0, 0]:.6g}" if r == 1 else "larger"
            raise InvalidInput("q", self.q, f"must be {bound}, given theta and m")
        return StartComponents(theta, m, orthogonal)


def start_from(theta: Any = 0.0, m: Any = 0.0, q: Any = None) -> PrescribedStart:
    """Make a start with prescribed overlaps, for `train` and `dynamics`.

    The weights combine Q*, the positions and random directions orthogonal to both, such that the
    overlaps of token 1 have the prescribed values: exactly for `train` at finite d, unless Q*
    alone exceeds q, and in the limit of large d for `dynamics`.

    Parameters
    ----------
    theta : float or (r, t) array
        ``sigma_1^2 Q^T Q*/d``.
    m : float, (r,) array or (L, r) array
        ``Q^T p_1/sqrt d`` for a direction along ``p_1``; or the overlaps with all positions.
    q : float or (r, r) array, optional
        ``sigma_1^2 Q^T Q/d``; by default the smallest that theta and m allow.

    Examples
    --------
    >>> start = dp.start_from(theta=0.05, m=0.1, q=0.06)
    >>> runs = dp.train(dp.positional_semantic(), alpha=2.0, d=40, seeds=2, start=start)
    >>> len(runs.runs)
    2
    """
    return PrescribedStart(theta, m, q)


def changed_start(
    model: Model,
    start: str,
    scale: float | None = None,
    *,
    theta: Any = None,
    m: Any = None,
    q: Any = None,
) -> PrescribedStart:
    """Return the limit of a named start with other values of some overlaps.

    The component orthogonal to Q* and to the positions stays the same, unless q is given.
    """
    components = start_components(model, start, scale)
    rho = float(model.rho[0])
    theta = rho * components.theta if theta is None else theta
    m = components.m.T if m is None else m
    if q is None:
        smallest = PrescribedStart(theta, m, None).components(model)
        q = rho * (smallest.gram(model) + components.orthogonal)
    return PrescribedStart(theta, m, q)


def _as_array(field: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return an array of a shape; a single number is enough if the size is one or it is zero."""
    if np.ndim(value) == 0:
        single = validation.number(field, value)
        if single == 0 or np.prod(shape) == 1:
            return np.full(shape, single)
    return validation.array(field, value, shape)


def _all_tokens(model: Model, m: Any) -> Float[np.ndarray, "r tokens"]:
    """Return the overlaps with all positions; those with the first one determine a direction."""
    shape = (model.length, model.student_rank)
    if np.ndim(m) == 2:
        return validation.array("m", m, shape).T
    first = _as_array("m", m, shape[1:])
    if not np.any(first):
        return np.zeros(shape[::-1])
    products = np.asarray(model.gram)[0]
    if products[0] <= 0:
        raise InvalidInput("m", m, "must be 0 in a model whose p_1 is zero")
    return np.outer(first, products / products[0])


def position_modes(model: Model) -> Float[np.ndarray, "tokens modes"]:
    """Return F with ``F F^T = P``: the positions in the fewest orthonormal coordinates."""
    values, vectors = np.linalg.eigh(np.asarray(model.gram))
    present = values > 1e-9 * max(1.0, float(values[-1]))
    return np.asarray(vectors[:, present] * np.sqrt(values[present]))[:, ::-1]


class PrescribedInitializer(eqx.Module):
    """Prescribed start as a function."""

    components: StartComponents  #: components of the weights
    inverse_modes: Float[np.ndarray, "modes tokens"]  #: pseudoinverse of `position_modes`

    def __call__(self, key: Array, teacher_weights: Array, positions: Array) -> Weights:
        d, dtype = teacher_weights.shape[0], teacher_weights.dtype
        theta, m, orthogonal = (jnp.asarray(array, dtype) for array in self.components)
        inverse = jnp.asarray(self.inverse_modes, dtype)
        gram = theta @ theta.T + (m @ inverse.T) @ (m @ inverse.T).T + orthogonal
        span = jnp.concatenate([teacher_weights / np.sqrt(d), (inverse @ positions).T], axis=1)
        overlaps = jnp.concatenate([theta, m @ inverse.T], axis=1)
        coefficients = jnp.linalg.solve(span.T @ span, overlaps.T)
        # Q* and the positions are orthonormal in the limit only, so that the remaining Gram
        # matrix may have small negative eigenvalues at finite d.
        remaining = gram - coefficients.T @ (span.T @ span) @ coefficients
        values, vectors = jnp.linalg.eigh((remaining + remaining.T) / 2)
        noise = 1e3 * np.finfo(dtype).eps * (1 + jnp.trace(gram))
        root = vectors * jnp.sqrt(jnp.where(values > noise, values, 0.0))
        random = jax.random.normal(key, (d, root.shape[0]), dtype)
        basis = jnp.linalg.qr(jnp.concatenate([span, random], axis=1))[0][:, span.shape[1] :]
        return np.sqrt(d) * (span @ coefficients + basis @ root.T)


def resolve_start(
    model: Model, start: str | StartFunction | PrescribedStart, scale: float | None = None
) -> StartFunction:
    """Return a start as a function ``(key, teacher_weights, positions) -> Q``.

    An untied student starts with equal queries and keys. `scale` is the standard deviation of
    random entries, by default `DEFAULT_SCALE`.

    Examples
    --------
    >>> callable(dp.custom_training.resolve_start(dp.positional_semantic(), "semantic"))
    True
    """
    if not isinstance(start, str):
        _refuse_scale(scale)
        if isinstance(start, PrescribedStart):
            return PrescribedInitializer(
                start.components(model), np.linalg.pinv(position_modes(model))
            )
        if not callable(start):
            rule = f"must be one of {', '.join(INITIALIZERS)}, start_from(...) or a function"
            raise InvalidInput("start", start, rule)
        return start
    initializer, copies = _initializer(model, start)
    return NamedInitializer(
        initializer,
        model.student_rank,
        copies,
        np.asarray(_scale(scale)),
        initializer.first_column(model),
    )


def start_components(
    model: Model, start: str | PrescribedStart | StartFunction, scale: float | None = None
) -> StartComponents:
    """Return the components of initial weights in the limit of large d."""
    if isinstance(start, PrescribedStart):
        _refuse_scale(scale)
        return start.components(model)
    if not isinstance(start, str):
        rule = "must be a name or overlaps unless d is given"
        raise InvalidInput("start", start_name(start), rule)
    initializer, copies = _initializer(model, start)
    if initializer.limit is None:
        raise InvalidInput("start", start, "has no limit of large d; give d")
    parts = initializer.limit(model, model.student_rank // copies, _scale(scale))
    first = initializer.first_column(model)
    theta, m = (np.roll(part, first, axis=0) for part in parts[:2])
    orthogonal = np.roll(parts.orthogonal, (first, first), axis=(0, 1))
    return StartComponents(
        np.tile(theta, (copies, 1)), np.tile(m, (copies, 1)), np.tile(orthogonal, (copies, copies))
    )


def _initializer(model: Model, start: str) -> tuple[Initializer, int]:
    """Return a start by its name, and the number of copies of its columns."""
    initializer = INITIALIZERS[INITIALIZERS.check(start)]
    copies = 2 if is_untied(model) else 1
    objection = initializer.objection(model, model.student_rank // copies)
    if objection is not None:
        raise InvalidInput("start", start, objection)
    return initializer, copies


def _scale(scale: float | None) -> float:
    return validation.number("scale", DEFAULT_SCALE if scale is None else scale, above=0)


def _refuse_scale(scale: float | None) -> None:
    if scale is not None:
        raise InvalidInput("scale", scale, "must not be given with overlaps or a function as start")


def start_name(start: str | StartFunction | PrescribedStart) -> str:
    """Return the name of a start in results."""
    if isinstance(start, PrescribedStart):
        overlaps = {"theta": start.theta, "m": start.m, "q": start.q}
        return ", ".join(
            f"{name} = {np.asarray(value).tolist()}"
            for name, value in overlaps.items()
            if value is not None
        )
    return start if isinstance(start, str) else "custom"


def initial_weights(
    model: Model, start: StartFunction, key: Array, teacher_weights: Array, positions: Array
) -> Weights:
    """Call a start and check the shape of its weights.

    Examples
    --------
    >>> import jax
    >>> model, training = dp.positional_semantic(), dp.custom_training
    >>> data = dp.sample(model, d=40, n=80, key=0, dtype="float32")
    >>> start, key = training.resolve_start(model, "random"), jax.random.key(1)
    >>> training.initial_weights(model, start, key, data.teacher_weights, data.positions).shape
    (40, 1)
    """
    shape = (teacher_weights.shape[0], model.student_rank)
    weights: Any = start(key, teacher_weights, positions)
    try:
        weights = jnp.asarray(weights, teacher_weights.dtype)
    except (TypeError, ValueError):
        raise InvalidInput("start", weights, f"must return an array of shape {shape}") from None
    if weights.shape != shape:
        value = f"a function returning shape {weights.shape}"
        raise InvalidInput("start", value, f"must return shape {shape}")
    return weights
