"""The definition of a model: tokens, teacher, student, ridge.

A sentence is ``x`` in R^{L x d} with independent rows ``x_l ~ N(0, sigma_l^2 I)``, or with
other covariances if a spectrum is given. The teacher labels it by ``y = T[x Q*/sqrt d] x``;
the student answers ``f = S[(x + p) Q/sqrt d] (x + p)`` and is trained on n = alpha d
sentences by minimizing ``sum |y - f|^2 / (2d) + (ridge/2) |Q|^2``. In the limit of large d the
results depend only on the functions T and S, the token scales (and spectra) and the Gram matrix of
the positional encodings ``p``, which make up a `Model`.

In general the teacher gives any label from its fields ``h* = x Q*/sqrt d`` (and from noise), and
the loss of a sentence is any function ``loss(X, label) >= 0`` of the student's fields
``X = (x + p) Q/sqrt d``. Tokens may have means that depend on a hidden variable
(`dotphase.model.latent`), and be correlated inside a sentence.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Never

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.linalg import block_diag

from dotphase.config import validation
from dotphase.config.formatting import Description
from dotphase.config.settings import unknown_keyword
from dotphase.errors import InvalidInput
from dotphase.model.latent import Latent, check_gram
from dotphase.model.spectrum import Spectrum
from dotphase.model.validation import check_functions, name_of

#: Largest number of tokens of a sentence, and of columns of weights, that memory allows.
MAX_TOKENS, MAX_COLUMNS = 2**10, 2**16
#: Range of the token scales, whose powers must be finite.
SCALES = 1e-50, 1e50

Attention = Callable[[Float[Array, "tokens rank"]], Float[Array, "tokens tokens"]]


class Model(eqx.Module):
    """A dot-product attention student, its teacher and their data.

    Parameters
    ----------
    teacher, student : callable
        JAX functions ``(L, rank) -> (L, L)`` of the projected tokens. Write a function with
        parameters that you sweep as an `equinox.Module` with ``__call__``: it is compiled once.
        With a `loss` there is no student, and the teacher returns the labels of this loss; its
        arguments are the fields, then the `noise` and the loadings of the `latent` means, if the
        model has them.
    length : int
        Number of tokens L in a sentence.
    teacher_rank, student_rank : int
        Columns t of Q* and r of Q.
    sigma : float or sequence of float
        Standard deviation of each token's entries; one number stands for all tokens. With a
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
        Number of standard normal numbers z per sentence in ``teacher(h, z)``.
    proximal : callable or "search", optional
        For a loss with kinks: ``proximal(omega, V, label)``, the (L, r) array X that minimizes
        ``(X - omega)^T V^{-1} (X - omega)/2 + loss(X, label)``, V being (L r, L r). "search" finds
        it by a line search, for a single field. A smooth loss needs none.
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
    #: True if the first L directions are those of the positional encodings.
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
        **unknown: Never,
    ) -> None:
        if unknown:
            names = [field.name for field in dataclasses.fields(self)]
            raise unknown_keyword(next(iter(unknown)), names)
        self.length = validation.integer("length", length, at_least=1, at_most=MAX_TOKENS)
        for name, rank in (("teacher_rank", teacher_rank), ("student_rank", student_rank)):
            setattr(self, name, validation.integer(name, rank, at_least=1, at_most=MAX_COLUMNS))
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
        check_functions(self)

    @property
    def description(self) -> Description:
        """The functions and the parameters of the model."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        hidden = ("has_positions",) if self.noise else ("has_positions", "noise")
        rows = [
            (name, format_part(value))
            for name, value in values.items()
            if value is not None and name not in hidden
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
        """Replace parameters, by their names in `Model`, and check the new model.

        Examples
        --------
        >>> import dotphase as dp
        >>> float(dp.positional_semantic().replace(ridge=0.1).ridge)
        0.1
        """
        names = [field.name for field in dataclasses.fields(self) if field.name != "has_positions"]
        parameters = {name: getattr(self, name) for name in names}
        for name, value in changes.items():
            if name not in parameters:
                raise InvalidInput(name, value, f"is no part of a Model: {', '.join(parameters)}")
        return Model(**(parameters | changes))

    @property
    def rho(self) -> Float[np.ndarray, " tokens"]:
        """Squared norm per dimension of each token, ``rho_l = sigma_l^2``."""
        return self.sigma**2

    @property
    def eigenvalues(self) -> Float[np.ndarray, "tokens atoms"]:
        """Eigenvalues gamma_{l,i} of the covariances; a single one if tokens are white."""
        shape = np.ones((1, 1)) if self.spectrum is None else self.spectrum.values
        return np.asarray(self.rho)[:, None] * shape

    @property
    def eigenweights(self) -> Float[np.ndarray, " atoms"]:
        """Fraction w_i of the directions that have each eigenvalue."""
        return np.ones(1) if self.spectrum is None else np.asarray(self.spectrum.weights)

    @property
    def plain(self) -> bool:
        """True for attention with the squared loss, no noise and independent, centered tokens.

        Such a model can be compared with a linear positional layer.
        """
        return self.loss is None and not self.noise and not self.structured

    @property
    def structured(self) -> bool:
        """True if tokens have latent means or correlations."""
        return self.latent is not None or self.correlation is not None

    @property
    def normals(self) -> int:
        """Number of standard normal variables of a sentence besides its tokens: noise, latent."""
        return self.noise + (0 if self.latent is None else self.latent.normals)

    @property
    def directions(self) -> int:
        """Number of directions in the means of tokens: positions, then the mu_j."""
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
    def teacher_overlaps(self) -> Float[np.ndarray, "directions t"]:
        """Overlaps of the directions with the columns of the teacher; zero for positions."""
        of_positions = np.zeros((self.length if self.has_positions else 0, self.teacher_rank))
        if self.latent is None:
            return of_positions
        return np.concatenate([of_positions, self.latent.overlaps(self.teacher_rank)])

    @property
    def mixer(self) -> Float[Array, "tokens tokens"] | None:
        """K in ``x = K x'``, with independent tokens x' of the same scales; None if K = 1."""
        if self.correlation is None:
            return None
        root = jnp.linalg.cholesky(jnp.asarray(self.correlation))
        return self.sigma[:, None] * root / self.sigma

    def mix(self, x: Float[Any, "*n tokens k"]) -> Float[Any, "*n tokens k"]:
        """Mix the fields of independent tokens to those of correlated ones, ``K x``."""
        return x if self.mixer is None else self.mixer @ x

    @property
    def covariance(self) -> Float[Any, "tokens tokens"]:
        """``E x_k . x_l/d``: diag(rho) if tokens are independent."""
        if self.correlation is None:
            return np.diag(self.rho)
        return self.sigma[:, None] * self.correlation * self.sigma

    @property
    def test_factor(self) -> float:
        """Ratio of the test error to the mean of `test_loss`."""
        return 2 / self.length if self.loss is None else 1.0

    def energy(self, x: Float[Array, "tokens rank"], target: Any) -> Float[Array, ""]:
        """Loss of one sentence.

        ``ell(X; T) = 1/2 tr[(T - S(X)) diag(rho) (T - S(X))^T]`` for attention, with the covariance
        of correlated tokens in place of diag(rho); or the model's own loss.
        """
        if self.loss is not None:
            return jnp.asarray(self.loss(x, target))
        error = target - self.student(x)
        if self.correlation is None:
            return 0.5 * jnp.sum(error**2 * self.rho)
        return 0.5 * jnp.sum((error @ self.covariance) * error)

    def test_loss(self, x: Float[Array, "tokens rank"], target: Any) -> Float[Array, ""]:
        """Integrand of the test error: the metric, or the loss."""
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
        """Loadings of the directions in the mean of each token."""
        blocks = [jnp.eye(self.length)] if self.has_positions else []
        if self.latent is not None:
            blocks.append(self.latent.draw(normal[self.noise :]))
        return jnp.concatenate(blocks, axis=1)


def format_part(value: Any) -> str:
    """Format a part of a model: a number, an array, or the name and parameters of a function."""
    if isinstance(value, np.ndarray | jax.Array):
        numbers = np.asarray(value)
        is_constant = numbers.ndim == 1 and np.ptp(numbers) == 0
        return str((numbers[0] if is_constant else numbers).round(6).tolist())
    if isinstance(value, eqx.Module):
        parts = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        inside = ", ".join(f"{name}={format_part(part)}" for name, part in parts.items())
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
    """Refuse any object but a `Model`."""
    if not isinstance(model, Model):
        rule = "must be a Model, as dp.positional_semantic() or dp.Model(...) return one"
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
    """Refuse a model with one of these fields, which `what` does not support."""
    for name in fields:
        value = getattr(model, name)
        if value is not None and value is not False and not (name == "noise" and value == 0):
            raise InvalidInput(name, value if np.isscalar(value) else name_of(value),
                               f"must be left out: {what} does not support it")  # fmt: skip


def refuse_spectrum(model: Model, what: str) -> None:
    """Refuse a model with a spectrum, which `what` does not support."""
    check_model(model)
    if model.spectrum is not None:
        raise InvalidInput("spectrum", model.spectrum, f"must be None: {what} is for white tokens")


def _check_positions(positions: Any, length: int) -> np.ndarray:
    if positions is None:
        return np.zeros((length, length))
    try:
        shape = np.shape(positions)
    except ValueError:  # rows of different lengths, which `check_gram` refuses
        shape = ()
    if len(shape) == 2 and shape[0] == length != shape[1]:
        rule = f"must be the Gram matrix p @ p.T of shape {(length, length)}, not the vectors p"
        raise InvalidInput("positions", f"an array of shape {shape}", rule)
    return check_gram("positions", positions, length)
