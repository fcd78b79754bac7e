"""The solvable model beside a head: shares from the overlaps, and a model with measured tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from dotphase.config import validation
from dotphase.config.formatting import Description, format_value
from dotphase.errors import InvalidInput
from dotphase.heads.result import SHARES
from dotphase.heads.source import as_array
from dotphase.heads.weights import symmetric_share
from dotphase.model.attention import softmax_attention
from dotphase.model.definition import Model, refuse
from dotphase.model.paper import positional_semantic
from dotphase.model.spectrum import from_data
from dotphase.numerics.quadrature import gauss_hermite
from dotphase.storage.results import Result
from dotphase.theory.critical import critical
from dotphase.theory.solution import Solution

#: Nodes in each content: exact for squares of scores, which have degree four.
ORDER = 3
#: Largest number of measured positions.
MAX_LENGTH = 8


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
        rule = "must be softmax_attention with student_rank = 1"
        raise InvalidInput("model.student", model.student, rule)
    if np.ptp(model.sigma) > 0:
        raise InvalidInput("model.sigma", model.sigma.tolist(), "must be equal numbers")
    m, q = (np.asarray(part).reshape(-1) for part in (solution.overlaps.m, solution.overlaps.q))
    return field_shares(m[: model.length], float(q.mean()))


def field_shares(m: Float[np.ndarray, " tokens"], q: float) -> dict[str, float]:
    """Shares of scores ``w_l w_k`` with fields of means m and variance q."""
    length, rule = len(m), gauss_hermite(ORDER, 2)
    query, key = np.sqrt(q) * rule.points
    same = np.eye(length, dtype=bool)
    other = np.where(same[..., None], 0, key)  # content of the key, if it is another token
    w = m[:, None, None] + query
    # E[x | positions, contents of query and key]: other tokens enter the mean of the row by m.
    row_mean = (m.sum() + query + other) / length
    x = w * (m[:, None] + np.where(same[..., None], query, key) - row_mean)
    both = float((x**2 @ rule.weights).mean())
    rest = q * (length - 1) ** 2 / length**3 * float((m**2 + q).mean())
    if both + rest == 0:
        raise InvalidInput("overlaps", "scores without variance", "must give different scores")
    positional = float(((x @ rule.weights) ** 2).mean())
    # A token attends to itself, or to another one: a mean over positions for each of the two.
    means = (same.mean(), x[same].mean(axis=0)), (1 - same.mean(), x[~same].mean(axis=0))
    semantic = sum(float(fraction * (mean**2 @ rule.weights)) for fraction, mean in means)
    parts = positional, semantic, both - positional - semantic, rest
    return {name: part / (both + rest) for name, part in zip(SHARES, parts, strict=True)}


@dataclass(frozen=True, eq=False, repr=False)
class Solvable(Result):
    """The solvable model with measured tokens and positions, see `solvable`."""

    model: Model
    alpha_c: float
    alpha_c_stderr: float
    alpha: float
    symmetric: float = float("nan")

    @property
    def description(self) -> Description:
        """Both numbers, and what is extrapolated."""
        exists = np.isfinite(self.alpha_c)
        alpha_c = format_value(self.alpha_c, self.alpha_c_stderr) if exists else "none"
        title = f"alpha_c = {alpha_c} in the solvable model, n/d = {self.alpha:.4g} of the data"
        notes = [
            "Measured: the spectrum of the tokens and the Gram matrix of the positions.",
            f"Extrapolated: {self.model.length} tokens a sentence, which are independent and "
            "Gaussian; the teacher and penalty of the paper; rank one; the lowest training loss.",
        ]
        if self.symmetric < 0.9:
            share = f"{100 * self.symmetric:.0f}% of the query-key form is symmetric"
            notes.append(f"Not tied: only {share}. The model has tied queries and keys.")
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
        ``model``, its ``alpha_c`` and ``alpha_c_stderr`` (NaN if the losses do not cross), the
        ``alpha`` of the data set, and ``symmetric``, the share of the symmetric part of the form.

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
    count = validation.integer("sentences", sentences, at_least=1)
    symmetric = np.nan if form is None else symmetric_share(_form(form, table.shape[1]))
    length = validation.integer("positions", len(encodings), at_least=2, at_most=MAX_LENGTH)
    centered = table - table.mean(axis=0)
    scale = 0.5 / np.sqrt(np.mean(centered**2))
    encodings = scale * (encodings - encodings.mean(axis=0))
    model = positional_semantic(
        omega, length=length, kinds=length, ridge=ridge, spectrum=from_data(table, atoms=16)
    ).replace(positions=encodings @ encodings.T)
    critical_point = critical(model, **search)
    numbers = critical_point.alpha_c, critical_point.alpha_c_stderr
    alpha_c, stderr = (np.nan if value is None else float(value) for value in numbers)
    return Solvable(model, alpha_c, stderr, count / table.shape[1], symmetric)


def _form(value: Any, d: int) -> Float[np.ndarray, "d d"]:
    """Return a query-key form of size d, which is not zero."""
    form = validation.array("form", as_array("form", value), (d, d))
    if not form.any():
        raise InvalidInput("form", "zero", "must differ from zero")
    return form
