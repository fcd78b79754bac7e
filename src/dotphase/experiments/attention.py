"""Attention matrices of the teacher and of both branches: averaged, and for one sentence.

In the limit of large d a sentence enters through its projections only: on the teacher, h* with
variance sigma^2, and on a student with overlaps (q, m, theta),

    h = m + (theta/sigma^2) h* + (q - theta^2/sigma^2)^{1/2} z,   z standard normal,

token by token. One sentence is one draw of h* and z, shared by the branches as far as it can
be: h* is the same for all, what lies outside Q* is drawn for each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from dotphase._numerics.precision import in_double_precision
from dotphase.model.definition import Model, call_many
from dotphase.theory.overlaps import Overlaps

#: Sentences of an average; its error is about .002 per entry.
SENTENCES = 2**14
#: Largest number of a sampled sentence.
LAST_SENTENCE = 999_999


@in_double_precision
def attention_matrices(
    model: Model, overlaps: dict[str, Overlaps | None], sentence: int
) -> dict[str, Any]:
    """Mean and sampled attention of the teacher and of every student, (L, L) arrays.

    Parameters
    ----------
    overlaps : dict
        Of each student; one that is None is left out.
    sentence : int
        Number of the sampled sentence, its seed.

    Examples
    --------
    >>> solution = dp.solve(dp.positional_semantic(), alpha=2.0, log2_points=12)
    >>> found = dp.analysis.attention_matrices(solution.model, {"student": solution.overlaps}, 0)
    >>> found["mean"]["student"].shape
    (2, 2)
    """
    shape = (SENTENCES, model.length, 1)
    rng = np.random.default_rng(0)
    noise = {name: rng.standard_normal(shape) for name in ("teacher", *overlaps)}
    one = np.random.default_rng([1, sentence])
    drawn = {name: one.standard_normal((1, *shape[1:])) for name in ("teacher", *overlaps)}
    result = {}
    for kind, normal in (("mean", noise), ("sample", drawn)):
        h = model.sigma[:, None] * normal["teacher"]
        result[kind] = {"teacher": np.asarray(call_many(model.teacher, h)).mean(axis=0)}
        for name, given in overlaps.items():
            if given is not None:
                fields = _fields(model, given, h, normal[name])
                result[kind][name] = np.asarray(call_many(model.student, fields)).mean(axis=0)
    return result


def _fields(
    model: Model,
    overlaps: Overlaps,
    h: Float[np.ndarray, "n tokens 1"],
    z: Float[np.ndarray, "n tokens 1"],
) -> Float[np.ndarray, "n tokens 1"]:
    q, theta = np.asarray(overlaps.q)[:, :, 0], np.asarray(overlaps.theta)[:, :, 0]
    rho = np.asarray(model.rho)[:, None]
    rest = np.sqrt(np.maximum(q - theta**2 / rho, 0.0))
    return np.asarray(overlaps.m) + theta / rho * h + rest * z
