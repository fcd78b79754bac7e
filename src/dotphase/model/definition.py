"""The one definition every engine works from: tokens, teacher, student, ridge.

A sentence is ``x`` in R^{L x d} with independent rows ``x_l ~ N(0, sigma_l^2 I)``, or with
other covariances if a spectrum is given. The teacher labels it by ``y = T[x Q*/sqrt d] x``;
the student answers ``f = S[(x + p) Q/sqrt d] (x + p)`` and is trained on n = alpha d
sentences by minimising ``sum |y - f|^2 / (2d) + (ridge/2) |Q|^2``. Only the functions T and
S, the token scales (and spectra) and the Gram matrix of the positional encodings ``p``
survive when d grows; they make up a `Model`.

That is the special case of a general one: the teacher gives any label from its fields
``h* = x Q*/sqrt d`` (and from noise), and the loss of a sentence is any function
``loss(X, label) >= 0`` of the student's fields ``X = (x + p) Q/sqrt d``. Tokens may have means
that a hidden variable chooses (`dotphase.model.latent`), and be correlated inside a sentence.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.linalg import block_diag

from dotphase.config import validation
from dotphase.config.formatting import Description
from dotphase.errors import InvalidInput
from dotphase.model.latent import Latent, check_gram
from dotphase.model.spectrum import Spectrum
from dotphase.model.validation import name_of, try_out

#: Most tokens of a sentence, and columns of weights: beyond, no engine can do anything.
MOST_TOKENS, MOST_COLUMNS = 2**10, 2**16
#: Sizes that a token may have: their powers are still numbers.
SCALES = 1e-50, 1e50

Attention = Callable[[Float[Array, "tokens rank"]], Float[Array, "tokens tokens"]]


class Model(eqx.Module):
    """A dot-product attention student, its teacher and their data.

    Parameters
    ----------
    teacher, student : callable
        JAX functions ``(L, rank) -> (L, L)`` of the projected tokens. A function with
        numbers of its own that should be swept without recompiling is best written as an
        `equinox.Module` with ``__call__``. With a `loss` there is no student, and the teacher
        returns whatever the loss calls a label; it is given the fields, then the `noise`, then
        the loadings of the `latent` means, as far as the model has them.
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
    loss : callable, optional
        ``loss(X, label) -> number >= 0`` of one sentence, X being the (L, r) fields of the student.
    metric : callable, optional
        ``metric(X, label) -> number``, whose mean over new sentences is the test error; the loss if
        not given.
    noise : int
        How many standard normal numbers per sentence the teacher is given, as ``teacher(h, z)``.
    proximal : callable or "search", optional
        For a loss with kinks: ``proximal(omega, V, label)``, the (L, r) array X that minimises
        ``(X - omega)^T V^{-1} (X - omega)/2 + loss(X, label)``, V being (L r, L r). "search" looks
        for it on a line, where there is a single field. A smooth loss needs none.
    latent : Latent, optional
        Means of the tokens that depend on a hidden variable.
    correlation : (L, L) array, optional
        Correlation of the tokens of a sentence, one on the diagonal; independent if not given.

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

    Logistic regression on the signs of a linear teacher:

    >>> import jax.numpy as jnp
    >>> model = dp.Model(
    ...     teacher=lambda h: jnp.sign(h[0, 0]),
    ...     loss=lambda x, y: jnp.logaddexp(0.0, -y * x[0, 0]),
    ...     metric=lambda x, y: 1.0 * (y * x[0, 0] < 0),
    ...     length=1,
    ...     sigma=1.0,
    ... )
    >>> model.plain
    False
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
    loss: Any
    metric: Any
    noise: int = eqx.field(static=True)
    proximal: Any
    latent: Latent | None
    correlation: Float[np.ndarray, "tokens tokens"] | None
    #: Whether the first L of the directions are those of the positional encodings.
    has_positions: bool = eqx.field(static=True)

    def __init__(
        self,
        teacher: Callable[..., Any],
        student: Attention | None = None,
        length: int = 1,
        teacher_rank: int = 1,
        student_rank: int = 1,
        sigma: float | Sequence[float] = 0.5,
        positions: Any = None,
        ridge: float = 0.01,
        spectrum: Spectrum | None = None,
        loss: Callable[..., Any] | None = None,
        metric: Callable[..., Any] | None = None,
        noise: int = 0,
        proximal: Callable[..., Any] | str | None = None,
        latent: Latent | None = None,
        correlation: Any = None,
    ) -> None:
        self.length = validation.integer("length", length, at_least=1, at_most=MOST_TOKENS)
        for name, rank in (("teacher_rank", teacher_rank), ("student_rank", student_rank)):
            setattr(self, name, validation.integer(name, rank, at_least=1, at_most=MOST_COLUMNS))
        self.sigma = _check_sigma(sigma, self.length)
        self.positions = _check_positions(positions, self.length)
        self.ridge = np.asarray(validation.number("ridge", ridge, above=0.0))
        self.spectrum = _check_spectrum(spectrum, self.length)
        self.noise = validation.integer("noise", noise, at_least=0)
        self.latent = _check_latent(latent, self.length, self.teacher_rank)
        self.correlation = _check_correlation(correlation, self.length)
        self.has_positions = latent is None or bool(np.any(self.positions))
        if self.spectrum is not None and (latent is not None or correlation is not None):
            rule = "must be None for tokens with latent means or correlations, which are white"
            raise InvalidInput("spectrum", spectrum, rule)
        self.teacher, self.student = teacher, student
        self.loss, self.metric, self.proximal = loss, metric, proximal
        try_out(self)

    @property
    def description(self) -> Description:
        """Its functions and its numbers."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        left_out = ("has_positions",) if self.noise else ("has_positions", "noise")
        rows = [
            (name, in_words(value))
            for name, value in values.items()
            if value is not None and name not in left_out
        ]
        return Description("Model", tuple(rows))

    def __repr__(self) -> str:
        rows = self.description.rows
        return f"Model({', '.join(f'{name}={value}' for name, value in rows)})"

    def __str__(self) -> str:
        return self.description.text()

    def _repr_html_(self) -> str:
        return self.description.html()

    def replace(self, **changes: Any) -> Model:
        """A relative of this model: the same but for what is given, by the names of `Model`.

        It is checked as a new model is.

        Examples
        --------
        >>> import dotphase as dp
        >>> float(dp.positional_semantic().replace(ridge=0.1).ridge)
        0.1
        """
        names = [field.name for field in dataclasses.fields(self) if field.name != "has_positions"]
        same = {name: getattr(self, name) for name in names}
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

    @property
    def plain(self) -> bool:
        """Whether it is attention with the squared loss on independent tokens without means, and
        labels without noise: what has a linear positional layer to compare with."""
        return self.loss is None and not self.noise and not self.structured

    @property
    def structured(self) -> bool:
        """Whether tokens have latent means or correlations."""
        return self.latent is not None or self.correlation is not None

    @property
    def normals(self) -> int:
        """Standard normal numbers of a sentence besides its tokens: noise, and hidden variable."""
        return self.noise + (0 if self.latent is None else self.latent.normals)

    @property
    def directions(self) -> int:
        """How many directions there are in the means of tokens: positions, then the mu_j."""
        hidden = 0 if self.latent is None else self.latent.directions
        return hidden + (self.length if self.has_positions else 0)

    @property
    def gram(self) -> Float[np.ndarray, "directions directions"]:
        """Gram matrix of the directions: positional encodings, if there are any, then mu_j."""
        if self.latent is None:
            return self.positions
        hidden = np.asarray(self.latent.gram)
        return block_diag(self.positions, hidden) if self.has_positions else hidden

    @property
    def known(self) -> Float[np.ndarray, "directions t"]:
        """Overlaps of the directions with the columns of the teacher; positions have none."""
        none = np.zeros((self.length if self.has_positions else 0, self.teacher_rank))
        if self.latent is None:
            return none
        return np.concatenate([none, self.latent.overlaps(self.teacher_rank)])

    @property
    def mixer(self) -> Float[Array, "tokens tokens"] | None:
        """K with ``x = K x'``, x' being independent tokens of the same scales; None for 1."""
        if self.correlation is None:
            return None
        root = jnp.linalg.cholesky(jnp.asarray(self.correlation))
        return self.sigma[:, None] * root / self.sigma

    def mix(self, x: Float[Any, "*n tokens k"]) -> Float[Any, "*n tokens k"]:
        """Fields of the tokens from those of independent ones, ``K x``."""
        return x if self.mixer is None else self.mixer @ x

    @property
    def covariance(self) -> Float[Any, "tokens tokens"]:
        """``E x_k . x_l/d``: diag(rho) where tokens are independent."""
        if self.correlation is None:
            return np.diag(self.rho)
        return self.sigma[:, None] * self.correlation * self.sigma

    @property
    def test_factor(self) -> float:
        """What the mean of `missed` is multiplied by to give the test error."""
        return 2 / self.length if self.loss is None else 1.0

    def energy(self, x: Float[Array, "tokens rank"], target: Any) -> Float[Array, ""]:
        """Loss of one sentence: ``ell(X; T) = 1/2 tr[(T - S(X)) diag(rho) (T - S(X))^T]`` for
        attention, with the covariance of the tokens in place of diag(rho) where they are
        correlated; or the model's own."""
        if self.loss is not None:
            return jnp.asarray(self.loss(x, target))
        error = target - self.student(x)
        if self.correlation is None:
            return 0.5 * jnp.sum(error**2 * self.rho)
        return 0.5 * jnp.sum((error @ self.covariance) * error)

    def missed(self, x: Float[Array, "tokens rank"], target: Any) -> Float[Array, ""]:
        """What the test error averages: the metric, or the loss."""
        if self.metric is None:
            return self.energy(x, target)
        return jnp.asarray(self.metric(x, target), x.dtype)

    def label(self, h: Float[Array, "tokens t"], normal: Float[Array, " normals"]) -> Any:
        """The teacher's label of one sentence, from its fields and other random numbers."""
        more = [normal[: self.noise]] if self.noise else []
        if self.latent is not None:
            more.append(self.latent.draw(normal[self.noise :]))
        return self.teacher(h, *more)

    def loading(self, normal: Float[Array, " normals"]) -> Float[Array, "tokens directions"]:
        """How much of each direction the student sees in the mean of each token."""
        own = [jnp.eye(self.length)] if self.has_positions else []
        if self.latent is not None:
            own.append(self.latent.draw(normal[self.noise :]))
        return jnp.concatenate(own, axis=1)


def in_words(value: Any) -> str:
    """A part of a model, short: a number, an array, a function by its name and its numbers."""
    if isinstance(value, np.ndarray | jax.Array):
        numbers = np.asarray(value)
        same = numbers.ndim == 1 and np.ptp(numbers) == 0
        return str((numbers[0] if same else numbers).round(6).tolist())
    if isinstance(value, eqx.Module):
        parts = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        inside = ", ".join(f"{name}={in_words(part)}" for name, part in parts.items())
        return f"{type(value).__name__}({inside})"
    return str(getattr(value, "__name__", value))


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


def _check_latent(latent: Any, length: int, rank: int) -> Latent | None:
    if latent is None:
        return None
    if not isinstance(latent, Latent):
        raise InvalidInput("latent", latent, "must be None or a Latent")
    sample = np.zeros(latent.normals)
    try:
        shape = jax.eval_shape(latent.draw, sample).shape
    except Exception as error:
        reason = (str(error).strip() or "no message").splitlines()[0]
        rule = f"must take {latent.normals} numbers, but it raised {type(error).__name__}: {reason}"
        raise InvalidInput("latent.loadings", name_of(latent.loadings), rule) from error
    if shape != (length, latent.directions):
        rule = f"must be of shape ({length}, {latent.directions}), tokens by directions"
        raise InvalidInput("latent.loadings", f"shape {shape}", rule)
    if latent.teacher is not None and latent.teacher.shape[1] != rank:
        rule = f"must have {rank} columns, as the teacher has"
        raise InvalidInput("latent.teacher", latent.teacher.tolist(), rule)
    return latent


def _check_correlation(correlation: Any, length: int) -> np.ndarray | None:
    if correlation is None:
        return None
    gram = check_gram("correlation", correlation, length)
    if not np.allclose(np.diag(gram), 1) or np.linalg.eigvalsh(gram)[0] < 1e-6:
        rule = "must be a correlation matrix: ones on the diagonal, and positive definite"
        raise InvalidInput("correlation", correlation, rule)
    return gram


def refuse(model: Model, what: str, *fields: str) -> None:
    """Refuse a model that has one of the fields, which `what` does not know."""
    for name in fields:
        value = getattr(model, name)
        if value is not None and value is not False and not (name == "noise" and value == 0):
            raise InvalidInput(name, value if np.isscalar(value) else name_of(value),
                               f"must be left out: {what} does not know it")  # fmt: skip


def refuse_spectrum(model: Model, what: str) -> None:
    """Refuse a model with a spectrum where only white tokens are worked out."""
    check_model(model)
    if model.spectrum is not None:
        raise InvalidInput("spectrum", model.spectrum, f"must be None: {what} is for white tokens")


def _check_positions(positions: Any, length: int) -> np.ndarray:
    if positions is None:
        return np.zeros((length, length))
    return check_gram("positions", positions, length)
