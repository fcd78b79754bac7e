"""The query-key form of a head between the spans of positions and of tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from dotphase.errors import InvalidInput
from dotphase.heads.source import as_array
from dotphase.storage.results import Result


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
        between the principal directions of positions and of tokens, and ``chance``, that of a
        random form. ``singular_values``, ``effective_rank = (sum s^2)^2/sum s^4``, and
        ``symmetric``, the share of the symmetric part, one if queries and keys are tied.

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
            rule = "must be a matrix of finite numbers"
            raise InvalidInput(name, f"shape {array.shape}", rule)
    w_q, w_k, p, e = arrays.values()
    d = len(w_q)
    if w_q.shape != w_k.shape:
        raise InvalidInput("query", f"shape {w_q.shape}", "must be (d, r), as that of key")
    for name in ("positions", "tokens"):
        if arrays[name].shape[1] != d:
            rule = f"must have {d} columns, the rows of query"
            raise InvalidInput(name, f"shape {arrays[name].shape}", rule)
    form = w_q @ w_k.T
    size = float(np.sum(form**2))
    cov_p, cov_e = np.cov(p.T, bias=True), np.cov(e.T, bias=True)
    positional = _variance(form, _second_moment(p + e.mean(axis=0)), cov_p)
    semantic = _variance(form, _second_moment(e + p.mean(axis=0)), cov_e)
    mixed = _variance(form, cov_p, cov_e) + _variance(form, cov_e, cov_p)
    total = positional + semantic + mixed
    if not (size > 0 and total > 0):
        raise InvalidInput("query", "scores without variance", "must give different scores")
    alignment, chance = {}, {}
    for name, covariance in (("positions", cov_p), ("tokens", cov_e)):
        basis = _principal_directions(covariance)
        alignment[name] = float(np.sum((basis.T @ form @ basis) ** 2) / size)
        chance[name] = (basis.shape[1] / d) ** 2
    values = np.linalg.svd(form, compute_uv=False)
    return QueryKeyForm(
        positional=positional / total,
        semantic=semantic / total,
        interaction=mixed / total,
        alignment=alignment,
        chance=chance,
        singular_values=values,
        effective_rank=float(np.sum(values**2) ** 2 / np.sum(values**4)),
        symmetric=symmetric_share(form),
    )


def symmetric_share(form: Float[np.ndarray, "d d"]) -> float:
    """Share of ``|M|^2`` in the symmetric part of M, one if queries and keys are tied."""
    return float(np.sum((form + form.T) ** 2) / (4 * np.sum(form**2)))


def _second_moment(rows: np.ndarray) -> np.ndarray:
    return rows.T @ rows / len(rows)


def _variance(form: np.ndarray, query: np.ndarray, key: np.ndarray) -> float:
    """Variance of ``a^T M b`` for independent a and b with these second moments."""
    return float(np.sum((query @ form @ key) * form))


def _principal_directions(covariance: np.ndarray) -> np.ndarray:
    """The leading eigenvectors, as many as the participation ratio of the eigenvalues."""
    values, vectors = np.linalg.eigh(covariance)
    count = np.ceil(values.sum() ** 2 / max(float(np.sum(values**2)), 1e-300) - 1e-9)
    return vectors[:, len(values) - int(count) :]
