"""From the name of a start, or a user's function, to the weights that a run begins at."""

from __future__ import annotations

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
from dotphase.finite_d.initializers import INITIALIZERS
from dotphase.finite_d.loss import Weights
from dotphase.model import Model
from dotphase.model.untied import is_untied

#: A user's start: ``(key, teacher_weights, positions) -> Q``
StartFunction = Callable[[Array, Float[Array, "d t"], Float[Array, "tokens d"]], Weights]

Scale = Float[Array, ""] | Float[np.ndarray, ""]

#: Standard deviation of the entries of a random start, and of columns nothing else is said of.
DEFAULT_SCALE = 0.1


class StartComponents(NamedTuple):
    """What the weights of a start are made of, column by column, when d grows.

    Attributes
    ----------
    theta : ``Q^T Q*/d``
    m : ``Q^T p_l/sqrt d`` of every token
    rest : Gram matrix over d of what is orthogonal to Q* and to the positions
    """

    theta: Float[np.ndarray, "r t"]
    m: Float[np.ndarray, "r tokens"]
    rest: Float[np.ndarray, "r r"]

    def total(self, model: Model) -> Float[np.ndarray, "r r"]:
        """``Q^T Q/d`` of all of it."""
        along = self.m @ np.linalg.pinv(position_modes(model)).T
        return np.asarray(self.theta @ self.theta.T + along @ along.T + self.rest)


@dataclass(frozen=True)
class Initializer:
    """A start that has a name, for any number of columns.

    Attributes
    ----------
    weights : ``(key, teacher_weights, positions, columns, scale) -> Q``
    refused : ``(model, columns) -> `` why this model cannot begin there, or None
    limit : ``(model, columns, scale) -> Parts`` when d grows; None if that is not known
    """

    weights: Callable[[Array, Array, Array, int, Scale], Weights]
    refused: Callable[[Model, int], str | None] = lambda model, columns: None
    limit: Callable[[Model, int, float], StartComponents] | None = None


def require_positions(model: Model, columns: int) -> str | None:
    """Refuses models whose positions are all zero."""
    if np.any(np.asarray(model.gram)):
        return None
    return "needs a model whose positions are not all zero"


class NamedInitializer(eqx.Module):
    """Named start as a function; another scale needs no recompilation."""

    start: Initializer = eqx.field(static=True)
    columns: int = eqx.field(static=True)
    copies: int = eqx.field(static=True)
    scale: Scale

    def __call__(self, key: Array, teacher_weights: Array, positions: Array) -> Weights:
        columns = self.columns // self.copies
        once = self.start.weights(key, teacher_weights, positions, columns, self.scale)
        return jnp.concatenate([once] * self.copies, axis=1)


class PrescribedStart(eqx.Module):
    """A start with given overlaps of token 1; `start_from` makes one.

    Attributes
    ----------
    theta, m, q : as given; q is None for the least that theta and m allow
    """

    theta: Any
    m: Any
    q: Any

    def parts(self, model: Model) -> StartComponents:
        """What such weights are made of, or `InvalidInput` if there are none."""
        r, t, rho = model.student_rank, model.teacher_rank, float(model.rho[0])
        theta = _sized("theta", self.theta, (r, t)) / rho
        factor = position_modes(model)
        m = _all_tokens(model, self.m)
        along = m @ np.linalg.pinv(factor).T
        if not np.allclose(along @ factor.T, m, atol=1e-9):
            raise InvalidInput("m", self.m, "must be overlaps that some weights have with p_l")
        least = StartComponents(theta, m, np.zeros((r, r)))
        if self.q is None:
            return least
        taken = least.total(model)
        total = _sized("q", self.q, (r, r)) / rho
        rest = (total + total.T) / 2 - taken
        short = float(np.linalg.eigvalsh(rest)[0])
        if short < -1e-9 * max(1.0, float(np.abs(taken).max())):
            bound = f"must be >= {rho * taken[0, 0]:.6g}" if r == 1 else "must be larger"
            raise InvalidInput("q", self.q, f"{bound}: theta and m take so much")
        return StartComponents(theta, m, rest)


def start_from(theta: Any = 0.0, m: Any = 0.0, q: Any = None) -> PrescribedStart:
    """A start with given overlaps, for `train` and `dynamics` alike.

    The weights are a combination of Q*, the positions and random directions orthogonal to both,
    such that the overlaps of token 1 have these values: exactly for `train` at finite d, unless
    Q* alone is longer than q allows, and in the limit of large d for `dynamics`.

    Parameters
    ----------
    theta : float or (r, t) array
        ``sigma_1^2 Q^T Q*/d``.
    m : float, (r,) array or (L, r) array
        ``Q^T p_1/sqrt d``, along ``p_1``; or the overlaps with the positions of all tokens.
    q : float or (r, r) array, optional
        ``sigma_1^2 Q^T Q/d``; the least that theta and m allow if not given.

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
    """A start that has a name, in the limit, with some of its overlaps changed.

    What is orthogonal to Q* and to the positions stays as it is, unless q is given.
    """
    own = start_components(model, start, scale)
    rho = float(model.rho[0])
    theta = rho * own.theta if theta is None else theta
    m = own.m.T if m is None else m
    if q is None:
        taken = PrescribedStart(theta, m, None).parts(model)
        q = rho * (taken.total(model) + own.rest)
    return PrescribedStart(theta, m, q)


def _sized(field: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers of a shape; one number serves where there is one, and zero everywhere."""
    if np.ndim(value) == 0:
        single = validation.number(field, value)
        if single == 0 or np.prod(shape) == 1:
            return np.full(shape, single)
    return validation.array(field, value, shape)


def _all_tokens(model: Model, m: Any) -> Float[np.ndarray, "r tokens"]:
    """Overlaps with the positions of all tokens, from those of the first or from all of them."""
    shape = (model.length, model.student_rank)
    if np.ndim(m) == 2:
        return validation.array("m", m, shape).T
    first = _sized("m", m, shape[1:])
    if not np.any(first):
        return np.zeros(shape[::-1])
    own = np.asarray(model.gram)[0]
    if own[0] <= 0:
        raise InvalidInput("m", m, "must be 0 in a model whose p_1 is zero")
    return np.outer(first, own / own[0])


def position_modes(model: Model) -> Float[np.ndarray, "tokens modes"]:
    """F with ``F F^T = P``: the positions in orthonormal coordinates, as few as there can be."""
    values, vectors = np.linalg.eigh(np.asarray(model.gram))
    present = values > 1e-9 * max(1.0, float(values[-1]))
    return np.asarray(vectors[:, present] * np.sqrt(values[present]))[:, ::-1]


class PrescribedInitializer(eqx.Module):
    """A `PrescribedStart` start as a user's function would be."""

    parts: StartComponents
    back: Float[np.ndarray, "modes tokens"]

    def __call__(self, key: Array, teacher_weights: Array, positions: Array) -> Weights:
        d, kind = teacher_weights.shape[0], teacher_weights.dtype
        theta, m, rest = (jnp.asarray(part, kind) for part in self.parts)
        back = jnp.asarray(self.back, kind)
        total = theta @ theta.T + (m @ back.T) @ (m @ back.T).T + rest
        known = jnp.concatenate([teacher_weights / np.sqrt(d), (back @ positions).T], axis=1)
        wanted = jnp.concatenate([theta, m @ back.T], axis=1)
        inside = jnp.linalg.solve(known.T @ known, wanted.T)
        # Q* and the positions are orthonormal in the limit only: what is left of the length
        # here may be a little less than nothing.
        left = total - inside.T @ (known.T @ known) @ inside
        values, vectors = jnp.linalg.eigh((left + left.T) / 2)
        noise = 1e3 * np.finfo(kind).eps * (1 + jnp.trace(total))
        root = vectors * jnp.sqrt(jnp.where(values > noise, values, 0.0))
        drawn = jax.random.normal(key, (d, root.shape[0]), kind)
        basis = jnp.linalg.qr(jnp.concatenate([known, drawn], axis=1))[0][:, known.shape[1] :]
        return np.sqrt(d) * (known @ inside + basis @ root.T)


def resolve_start(
    model: Model, start: str | StartFunction | PrescribedStart, scale: float | None = None
) -> StartFunction:
    """The start as a function ``(key, teacher_weights, positions) -> Q``, from its name.

    An untied student starts with equal queries and keys. `scale` is the standard deviation of
    the entries that are random, `DEFAULT_SCALE` if it is not given.
    """
    if not isinstance(start, str):
        _without_scale(scale)
        if isinstance(start, PrescribedStart):
            return PrescribedInitializer(start.parts(model), np.linalg.pinv(position_modes(model)))
        if not callable(start):
            rule = f"must be one of {', '.join(INITIALIZERS)}, start_from(...) or a function"
            raise InvalidInput("start", start, rule)
        return start
    named, copies = _named(model, start)
    return NamedInitializer(named, model.student_rank, copies, np.asarray(_size(scale)))


def start_components(
    model: Model, start: str | PrescribedStart, scale: float | None = None
) -> StartComponents:
    """What the weights of a start are made of when d grows."""
    if isinstance(start, PrescribedStart):
        _without_scale(scale)
        return start.parts(model)
    named, copies = _named(model, start)
    if named.limit is None:
        raise InvalidInput("start", start, "has no limit when d grows; give d")
    theta, m, rest = named.limit(model, model.student_rank // copies, _size(scale))
    return StartComponents(
        np.tile(theta, (copies, 1)), np.tile(m, (copies, 1)), np.tile(rest, (copies, copies))
    )


def _named(model: Model, start: str) -> tuple[Initializer, int]:
    """A start by its name, and how often its columns are repeated."""
    named = INITIALIZERS[INITIALIZERS.check(start)]
    copies = 2 if is_untied(model) else 1
    reason = named.refused(model, model.student_rank // copies)
    if reason is not None:
        raise InvalidInput("start", start, reason)
    return named, copies


def _size(scale: float | None) -> float:
    return validation.number("scale", DEFAULT_SCALE if scale is None else scale, above=0)


def _without_scale(scale: float | None) -> None:
    if scale is not None:
        raise InvalidInput("scale", scale, "must not be given with a start of your own")


def start_name(start: str | StartFunction | PrescribedStart) -> str:
    """What results call a start."""
    if isinstance(start, PrescribedStart):
        given = {"theta": start.theta, "m": start.m, "q": start.q}
        return ", ".join(
            f"{name} = {np.asarray(value).tolist()}"
            for name, value in given.items()
            if value is not None
        )
    return start if isinstance(start, str) else "custom"


def initial_weights(
    model: Model, start: StartFunction, key: Array, teacher_weights: Array, positions: Array
) -> Weights:
    """Call a start and check what it returns."""
    shape = (teacher_weights.shape[0], model.student_rank)
    weights: Any = start(key, teacher_weights, positions)
    try:
        weights = jnp.asarray(weights, teacher_weights.dtype)
    except (TypeError, ValueError):
        raise InvalidInput("start", weights, f"must return an array of shape {shape}") from None
    if weights.shape != shape:
        found = f"a function returning shape {weights.shape}"
        raise InvalidInput("start", found, f"must return shape {shape}")
    return weights
