"""Theory of heads: the query-key form, shares from overlaps, a model with measured tokens."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from dotphase.config import validation
from dotphase.config.formatting import Description, format_value
from dotphase.errors import InvalidInput
from dotphase.heads.shares import SHARES
from dotphase.heads.source import as_array
from dotphase.model.attention import softmax_attention
from dotphase.model.definition import Model, refuse
from dotphase.model.paper import positional_semantic
from dotphase.model.spectrum import from_data
from dotphase.numerics.quadrature import gauss_hermite
from dotphase.storage.results import Result
from dotphase.theory.critical import critical
from dotphase.theory.solution import Solution

#: Largest number of measured positions.
MAX_LENGTH = 8


@dataclass(frozen=True, eq=False, repr=False)
class QueryKeyForm(Result):
    """Query-key form ``M = W_Q W_K^T`` of a head, see `query_key`."""

    positional: float
    semantic: float
    interaction: float
    alignment: dict[str, float]
    chance: dict[str, float]
    singular_values: Float[np.ndarray, " d"]
    effective_rank: float
    symmetric: float


def query_key(query: Any, key: Any, positions: Any, tokens: Any) -> QueryKeyForm:
    """Measure the query-key form ``M = W_Q W_K^T`` of a head without data.

    With encodings p and embeddings e, the mean over keys removed (a prime), a score is

        (p_i + e_a)^T M (p_j + e_b)' = (p_i + mean e)^T M p_j'                   positional
                                     + (e_a + mean p)^T M e_b'                   semantic
                                     + (p_i'^T M e_b' + e_a'^T M p_j')           interaction

    Parameters
    ----------
    query, key : (d, r) array
        Weights of one head: the query of x is ``W_Q^T x``. Transpose weights of `torch.nn.Linear`.
    positions, tokens : (L, d) and (V, d) array
        Positional encodings and token embeddings, as the layer receives them.

    Returns
    -------
    QueryKeyForm
        ``positional``, ``semantic``, ``interaction``: shares of the variance of scores for
        independent, equally frequent tokens and positions. ``alignment``: share of ``|M|^2``
        between the principal directions of positions and of tokens; ``chance``: of a random form.
        ``effective_rank = (sum s^2)^2/sum s^4`` of the singular values. ``symmetric``: share of
        the symmetric part, one if queries and keys are tied.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> weights, positions = rng.normal(size=(8, 2)), rng.normal(size=(5, 8))
    >>> dp.heads.query_key(weights, weights, positions, np.zeros((50, 8))).positional
    1.0
    """
    named = {"query": query, "key": key, "positions": positions, "tokens": tokens}
    arrays = {name: np.asarray(as_array(name, value), float) for name, value in named.items()}
    for name, array in arrays.items():
        if array.ndim != 2 or not np.isfinite(array).all():
            raise InvalidInput(name, f"shape {array.shape}", "must be a matrix of finite numbers")
    w_q, w_k, p, e = arrays.values()
    d = len(w_q)
    if w_q.shape != w_k.shape:
        raise InvalidInput("query", f"shape {w_q.shape}", "must be (d, r), as that of key")
    for name in ("positions", "tokens"):
        if arrays[name].shape[1] != d:
            rule = f"must have {d} columns, as query has rows; transpose weights of torch.nn.Linear"
            raise InvalidInput(name, f"shape {arrays[name].shape}", rule)
    form = w_q @ w_k.T
    size = float(np.sum(form**2))
    cov_p, cov_e = np.cov(p.T, bias=True), np.cov(e.T, bias=True)
    center = p.mean(axis=0) + e.mean(axis=0)
    common = np.outer(center, center)
    pairs = (cov_p + common, cov_p), (cov_e + common, cov_e), (cov_p, cov_e), (cov_e, cov_p)
    # Variances of a^T M b for independent a and b with these second moments.
    positional, semantic, *mixed = (float(np.sum((a @ form @ b) * form)) for a, b in pairs)
    total = positional + semantic + sum(mixed)
    if not (size > 0 and total > 0):
        raise InvalidInput("query", "scores without variance", "must give different scores")
    alignment, chance = {}, {}
    for name, covariance in (("positions", cov_p), ("tokens", cov_e)):
        # The leading eigenvectors, as many as the participation ratio of the eigenvalues.
        values, vectors = np.linalg.eigh(covariance)
        count = np.ceil(values.sum() ** 2 / max(float(np.sum(values**2)), 1e-300) - 1e-9)
        basis = vectors[:, d - int(count) :]
        alignment[name] = float(np.sum((basis.T @ form @ basis) ** 2) / size)
        chance[name] = (basis.shape[1] / d) ** 2
    values = np.linalg.svd(form, compute_uv=False)
    return QueryKeyForm(
        positional=positional / total,
        semantic=semantic / total,
        interaction=sum(mixed) / total,
        alignment=alignment,
        chance=chance,
        singular_values=values,
        effective_rank=float(np.sum(values**2) ** 2 / np.sum(values**4)),
        symmetric=symmetric_share(form),
    )


def symmetric_share(form: Float[np.ndarray, "d d"]) -> float:
    """Share of ``|M|^2`` in the symmetric part of M."""
    return float(np.sum((form + form.T) ** 2) / (4 * np.sum(form**2)))


def solution_shares(solution: Solution) -> dict[str, float]:
    """Shares of a student of rank one, as `shares` measures them on its attention matrices.

    A token is its content plus the encoding of its position, and the same contents occur at all
    positions. Its field is ``w_l = m_l + zeta_l``, with ``zeta_l`` normal of variance q from its
    content; the score of l and k is ``w_l w_k``.

    Parameters
    ----------
    solution : Solution
        Of a model with softmax attention of rank one and tokens of equal variance.

    Examples
    --------
    >>> solution = dp.solve(dp.positional_semantic(), alpha=2.0, log2_points=12)
    >>> parts = dp.heads.solution_shares(solution)
    >>> bool(parts["semantic"] > 0.5), round(sum(parts.values()), 6)
    (True, 1.0)
    """
    model = solution.model
    refuse(model, "the theory of shares", "loss", "latent", "correlation", "noise")
    if model.student is not softmax_attention or model.student_rank != 1:
        raise InvalidInput("model.student", model.student, "must be softmax, student_rank = 1")
    if np.ptp(model.sigma) > 0:
        raise InvalidInput("model.sigma", model.sigma.tolist(), "must be equal numbers")
    m, q = (np.asarray(part).reshape(-1) for part in (solution.overlaps.m, solution.overlaps.q))
    return field_shares(m[: model.length], float(q.mean()))


def field_shares(m: Float[np.ndarray, " tokens"], q: float) -> dict[str, float]:
    """Shares of scores ``w_l w_k`` with fields of means m and variance q."""
    length, rule = len(m), gauss_hermite(3, 2)  # exact for squares of scores, of degree four
    query, key = np.sqrt(q) * rule.points
    same = np.eye(length, dtype=bool)
    other = np.where(same[..., None], 0, key)  # content of the key, if it is another token
    # E[x | positions, contents of query and key]: other tokens enter the mean of the row by m.
    row_mean = (m.sum() + query + other) / length
    x = (m[:, None, None] + query) * (m[:, None] + other + same[..., None] * query - row_mean)
    both = float((x**2 @ rule.weights).mean())
    rest = q * (length - 1) ** 2 / length**3 * float((m**2 + q).mean())
    if both + rest == 0:
        raise InvalidInput("overlaps", "scores without variance", "must give different scores")
    positional = float(((x @ rule.weights) ** 2).mean())
    # A token attends to itself, or to another one: a mean over positions for each of the two.
    means = [(pairs.mean(), x[pairs].mean(axis=0)) for pairs in (same, ~same) if pairs.any()]
    semantic = sum(float(fraction * (mean**2 @ rule.weights)) for fraction, mean in means)
    parts = positional, semantic, both - positional - semantic, rest
    return {name: part / (both + rest) for name, part in zip(SHARES, parts, strict=True)}


@dataclass(frozen=True, eq=False, repr=False)
class Solvable(Result):
    """The solvable model with measured tokens and positions; alpha_c is NaN if there is none."""

    model: Model
    alpha_c: float
    alpha_c_stderr: float
    alpha: float
    symmetric: float = float("nan")

    @property
    def description(self) -> Description:
        """Both numbers, and what is extrapolated."""
        alpha_c = "none (the losses of the two minima do not cross)"
        if np.isfinite(self.alpha_c):
            alpha_c = format_value(self.alpha_c, self.alpha_c_stderr)
        title = f"alpha_c = {alpha_c} in the solvable model, n/d = {self.alpha:.4g} of the data"
        notes = [
            "Measured: the spectrum of the tokens and the Gram matrix of the positions.",
            f"Assumed: sentences of {self.model.length} independent Gaussian tokens; the paper's "
            "teacher, its omega and ridge; tied queries and keys of rank one; the lowest loss.",
            "Use this to compare data sets; it predicts no transition of a transformer.",
        ]
        if self.symmetric < 0.9:
            notes.append(f"Not tied: the form is {self.symmetric:.0%} symmetric, by chance 50%.")
        return Description(title, notes=tuple(notes))


def solvable(
    tokens: Any,
    positions: Any,
    sentences: int,
    form: Any = None,
    omega: float = 0.3,
    ridge: float = 0.01,
    **search: Any,
) -> Solvable:
    """Build the solvable model with the tokens and positions of a layer, and find its alpha_c.

    Vectors are scaled so that token entries have the paper's standard deviation, .5. The result
    orders data sets by their tokens; it does not predict the transition of a trained transformer.

    Parameters
    ----------
    tokens : (n, d) array
        Token vectors at the input of the layer, without positions.
    positions : (L, d) array
        Encodings of two positions, or of a few more; their mean is subtracted.
    sentences : int
        Number of training sentences of the data set.
    form : (d, d) array, optional
        ``W_Q W_K^T`` of the head, to see whether queries and keys are nearly tied.
    omega, ridge : float
        Teacher and penalty, which cannot be measured.
    **search
        Arguments of `dotphase.critical`.

    Returns
    -------
    Solvable
        With the ``alpha`` of the data set, and the ``symmetric`` share of the form.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> tokens, position = rng.normal(size=(300, 20)), rng.normal(size=20) / 9
    >>> search = {"alpha_min": 0.8, "alpha_max": 2.0, "log2_points": 12, "limits": False}
    >>> head = dp.heads.solvable(tokens, [position, -position], sentences=100, **search)
    >>> head.alpha, head.model.length
    (5.0, 2)
    """
    table, encodings = as_array("tokens", tokens), as_array("positions", positions)
    if table.ndim != 2 or encodings.ndim != 2 or encodings.shape[1] != table.shape[1]:
        rule = f"must be (L, d) with the d of tokens, {table.shape[-1]}"
        raise InvalidInput("positions", f"shape {encodings.shape}", rule)
    count, d = validation.integer("sentences", sentences, at_least=1), table.shape[1]
    symmetric = np.nan
    if form is not None:
        matrix = validation.array("form", as_array("form", form), (d, d))
        if not matrix.any():
            raise InvalidInput("form", "zero", "must differ from zero")
        symmetric = symmetric_share(matrix)
    length = validation.integer("positions", len(encodings), at_least=2, at_most=MAX_LENGTH)
    spectrum = from_data(table, atoms=16)
    scale = 0.5 / np.sqrt(np.mean((table - table.mean(axis=0)) ** 2))
    encodings = scale * (encodings - encodings.mean(axis=0))
    model = positional_semantic(omega, length=length, kinds=length, ridge=ridge, spectrum=spectrum)
    model = model.replace(positions=encodings @ encodings.T)
    point = critical(model, **search)
    alpha_c, stderr = np.array([point.alpha_c, point.alpha_c_stderr], float).tolist()  # or NaN
    return Solvable(model, alpha_c, stderr, count / d, symmetric)
