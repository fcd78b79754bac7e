"""The one definition every engine works from: tokens, teacher, student, ridge.

A sentence is ``x`` in R^{L x d} with independent rows ``x_l ~ N(0, sigma_l^2 I)``, or with
other covariances if a spectrum is given. The teacher labels it by ``y = T[x Q*/sqrt d] x``;
the student answers ``f = S[(x + p) Q/sqrt d] (x + p)`` and is trained on n = alpha d
sentences by minimising ``sum |y - f|^2 / (2d) + (ridge/2) |Q|^2``. Only the functions T and
S, the token scales (and spectra) and the Gram matrix of the positional encodings ``p``
survive when d grows; they make up a `Model`.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dotphase._numerics import validate
from dotphase._numerics.precision import in_double_precision
from dotphase.errors import InvalidInput
from dotphase.model.spectrum import Spectrum

#: Most tokens of a sentence, and columns of weights: beyond, no engine can do anything.
MOST_TOKENS, MOST_COLUMNS = 2**10, 2**16
#: Sizes that a token may have: their powers are still numbers.
SCALES = 1e-50, 1e50
#: Fields on which the functions of a model are tried, and their sizes in units of sigma.
FIELDS, SIZES = 4096, (1.0, 1.0, 1.0, 1.0, 1.5, 0.1, 1e-3, 1e-6)

Attention = Callable[[Float[Array, "tokens rank"]], Float[Array, "tokens tokens"]]


class Model(eqx.Module):
    """A dot-product attention student, its teacher and their data.

    Parameters
    ----------
    teacher, student : callable
        JAX functions ``(L, rank) -> (L, L)`` of the projected tokens. A function with
        numbers of its own that should be swept without recompiling is best written as an
        `equinox.Module` with ``__call__``.
    length : int
        Number of tokens L in a sentence.
    teacher_rank, student_rank : int
        Columns t of Q* and r of Q.
    sigma : float or sequence of float
        Standard deviation of each token's entries; one number serves all tokens. With a
        spectrum, the root of the mean variance.
    positions : (L, L) array
        Gram matrix ``P_kl = p_k . p_l`` of the positional encodings.
    ridge : float
        Strength lambda of the penalty on Q.
    spectrum : Spectrum, optional
        Shape of the tokens' covariances, see `dotphase.model.spectrum`; white if not given. The
        positional encodings are spread evenly over the eigendirections.

    Notes
    -----
    The columns of Q* are taken orthonormal, ``Q*^T Q*/d = I``. Any other teacher Gram
    matrix G is the same model with teacher ``h -> T(h G^{1/2})``.

    Examples
    --------
    >>> import jax
    >>> def attention(h):
    ...     return jax.nn.softmax(h @ h.T, axis=-1)
    ...
    >>> model = dp.Model(attention, attention, length=2, positions=[[1, -1], [-1, 1]], ridge=0.1)
    >>> model.length
    2
    """

    teacher: Any
    student: Any
    length: int = eqx.field(static=True)
    teacher_rank: int = eqx.field(static=True)
    student_rank: int = eqx.field(static=True)
    sigma: Float[np.ndarray, " tokens"]
    positions: Float[np.ndarray, "tokens tokens"]
    ridge: Float[np.ndarray, ""]
    spectrum: Spectrum | None

    def __init__(
        self,
        teacher: Attention,
        student: Attention,
        length: int,
        teacher_rank: int = 1,
        student_rank: int = 1,
        sigma: float | Sequence[float] = 0.5,
        positions: Any = None,
        ridge: float = 0.01,
        spectrum: Spectrum | None = None,
    ) -> None:
        self.length = validate.whole("length", length, at_least=1, at_most=MOST_TOKENS)
        for name, rank in (("teacher_rank", teacher_rank), ("student_rank", student_rank)):
            setattr(self, name, validate.whole(name, rank, at_least=1, at_most=MOST_COLUMNS))
        self.sigma = _check_sigma(sigma, self.length)
        self.positions = _check_positions(positions, self.length)
        self.ridge = np.asarray(validate.number("ridge", ridge, above=0.0))
        self.spectrum = _check_spectrum(spectrum, self.length)
        _check_attention("teacher", teacher, self.sigma, self.teacher_rank)
        _check_attention("student", student, self.sigma, self.student_rank)
        self.teacher = teacher
        self.student = student

    def replace(self, **changes: Any) -> Model:
        """A relative of this model: the same but for what is given, by the names of `Model`.

        It is checked as a new model is.

        Examples
        --------
        >>> import dotphase as dp
        >>> float(dp.positional_semantic().replace(ridge=0.1).ridge)
        0.1
        """
        same = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        for name, value in changes.items():
            if name not in same:
                raise InvalidInput(name, value, f"is no part of a Model: {', '.join(same)}")
        return Model(**(same | changes))

    @property
    def rho(self) -> Float[np.ndarray, " tokens"]:
        """Squared norm per dimension of each token, ``rho_l = sigma_l^2``."""
        return self.sigma**2

    @property
    def eigenvalues(self) -> Float[np.ndarray, "tokens atoms"]:
        """Eigenvalues gamma_{l,i} of the covariances; a single one where tokens are white."""
        shape = np.ones((1, 1)) if self.spectrum is None else self.spectrum.values
        return np.asarray(self.rho)[:, None] * shape

    @property
    def eigenweights(self) -> Float[np.ndarray, " atoms"]:
        """Fraction w_i of the directions that have each eigenvalue."""
        return np.ones(1) if self.spectrum is None else np.asarray(self.spectrum.weights)

    def loss(
        self, x: Float[Array, "tokens rank"], target: Float[Array, "tokens tokens"]
    ) -> Float[Array, ""]:
        """Loss of one sentence: ``ell(X; T) = 1/2 tr[(T - S(X)) diag(rho) (T - S(X))^T]``."""
        error = target - self.student(x)
        return 0.5 * jnp.sum(error**2 * self.rho)


def _check_sigma(sigma: Any, length: int) -> np.ndarray:
    try:
        values = np.asarray(sigma, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.asarray(np.nan)
    if values.ndim == 0:
        values = np.full(length, values)
    low, high = SCALES
    if values.shape != (length,) or not np.all((values >= low) & (values <= high)):
        rule = f"must be one positive number or {length} of them, one per token, "
        rule += f"from {low:g} to {high:g}"
        raise InvalidInput("sigma", sigma, rule)
    return values


def _check_spectrum(spectrum: Any, length: int) -> Spectrum | None:
    fits = isinstance(spectrum, Spectrum) and spectrum.values.shape[0] in (1, length)
    if spectrum is not None and not fits:
        rule = f"must be None or a Spectrum with one row of values for all tokens or {length} rows"
        raise InvalidInput("spectrum", spectrum, rule)
    return spectrum


def check_model(model: object) -> None:
    """Refuse what is no `Model`."""
    if not isinstance(model, Model):
        rule = "must be a Model, as dp.positional_semantic() or dp.Model(...) make one"
        raise InvalidInput("model", model, rule)


def refuse_spectrum(model: Model, what: str) -> None:
    """Refuse a model with a spectrum where only white tokens are worked out."""
    check_model(model)
    if model.spectrum is not None:
        raise InvalidInput("spectrum", model.spectrum, f"must be None: {what} is for white tokens")


def _check_positions(positions: Any, length: int) -> np.ndarray:
    if positions is None:
        return np.zeros((length, length))
    gram = validate.array("positions", positions, (length, length))
    scale = max(float(np.max(np.abs(gram))), 1.0)
    if not np.allclose(gram, gram.T, rtol=0, atol=1e-9 * scale):
        raise InvalidInput("positions", positions, "must be a symmetric Gram matrix p_k . p_l")
    gram = (gram + gram.T) / 2
    if np.linalg.eigvalsh(gram)[0] < -1e-9 * scale:
        rule = "must be positive semi-definite, as a Gram matrix is"
        raise InvalidInput("positions", positions, rule)
    return gram


@eqx.filter_jit
def call_many(
    function: Attention, h: Float[Array | np.ndarray, "n tokens rank"]
) -> Float[Array, "n tokens tokens"]:
    """An attention function on many inputs; compiled once for each function."""
    return jax.vmap(function)(jnp.asarray(h))


@in_double_precision
def _check_attention(field: str, function: Any, sigma: np.ndarray, rank: int) -> None:
    """Call an attention function on many fields; an (L, L) array of numbers must come back."""
    length = sigma.size
    allowed = f"must be a JAX function that takes a ({length}, {rank}) array and returns "
    allowed += f"a finite ({length}, {length}) array"
    name = getattr(function, "__name__", type(function).__name__)
    if not callable(function):
        raise InvalidInput(field, function, allowed)
    fields = _sample_fields(sigma, rank)
    _require_device()
    try:
        result = call_many(function, fields)
    except Exception as error:
        reason = (str(error).strip() or "no message").splitlines()[0]
        rule = f"{allowed}, but it raised {type(error).__name__}: {reason}"
        raise InvalidInput(field, name, rule) from error
    is_array = isinstance(result, jax.Array)
    if not is_array or result.shape != (len(fields), length, length):
        found = f"shape {result.shape[1:]}" if is_array else type(result).__name__
        raise InvalidInput(field, name, f"{allowed}, but it returned {found}")
    if not jnp.issubdtype(result.dtype, jnp.floating):
        raise InvalidInput(field, name, f"{allowed}, but it returned {result.dtype} numbers")
    place = where_not_finite(fields, result)
    if place is not None:
        raise InvalidInput(field, name, f"{allowed}, but some entries are not finite at {place}")


def _require_device() -> None:
    """Say so if JAX has nothing to compute on, before a function is blamed for it."""
    try:
        jax.devices()
    except RuntimeError as error:
        reason = " ".join(str(error).split())[:200]
        chosen = os.environ.get("JAX_PLATFORMS")
        rule = f"must name a device of this machine ({reason})"
        raise InvalidInput("JAX_PLATFORMS", chosen, rule) from None


def _sample_fields(sigma: np.ndarray, rank: int) -> Float[np.ndarray, "n tokens rank"]:
    """Projected tokens as they occur: of the size of sigma, some larger, some close to zero."""
    each = int(np.clip(2**20 // (sigma.size * max(sigma.size, rank)), 1, FIELDS // len(SIZES)))
    normal = np.random.default_rng(0).standard_normal((len(SIZES), each, sigma.size, rank))
    sized = np.asarray(SIZES)[:, None, None, None] * sigma[:, None] * normal
    return sized.reshape(-1, sigma.size, rank)


def where_not_finite(
    fields: Float[np.ndarray, "n tokens rank"], values: Float[Array | np.ndarray, "n ..."]
) -> str | None:
    """The first field at which a value is not finite, in words; None if all are finite."""
    finite = np.isfinite(np.asarray(values)).reshape(len(fields), -1).all(axis=1)
    if finite.all():
        return None
    worst = np.asarray(fields)[int(np.argmin(finite))]
    shown = " ".join(np.array2string(worst, precision=4, separator=",").split())
    return f"h = {shown}" if len(shown) <= 80 else f"h = {shown[:77]}..."
