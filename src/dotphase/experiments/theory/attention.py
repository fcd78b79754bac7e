"""Attention matrices of the teacher and of both branches: averaged, and for one sentence.

In the limit of large d a sentence enters through its projections only: on the teacher, h* with
variance sigma^2, and on a student with overlaps (q, m, theta),

    h = m + theta h*/sigma^2 + (q - theta theta^T/sigma^2)^{1/2} z,   z standard normal,

token by token. One sentence is one draw of h* and z, shared by the branches as far as it can
be: h* is the same for all, what lies outside Q* is drawn for each.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Float

from dotphase.config import validation
from dotphase.model.definition import Model, refuse
from dotphase.model.validation import call_many
from dotphase.numerics.quadrature import normal_points
from dotphase.runtime.precision import in_double_precision
from dotphase.theory.overlaps import Overlaps
from dotphase.theory.solution import Solution
from dotphase.theory.state_evolution import draw_fields

#: Sentences of an average; its error is about .002 per entry.
SENTENCES = 2**14
#: Quasi-random sentences of an average along a training; its error is about as large.
POINTS = 2**11
#: Largest number of a sampled sentence.
LAST_SENTENCE = 999_999


@in_double_precision
def attention(solution: Solution, *, sentence: int | None = None) -> xr.DataArray:
    """Attention of the teacher and of a solved student, averaged over sentences or for one.

    Parameters
    ----------
    solution : Solution
        From `dotphase.solve`; any ranks and lengths.
    sentence : int, optional
        Number of a sampled sentence, its seed; the mean over all sentences if not given.

    Returns
    -------
    xarray.DataArray
        Over ``who`` ("teacher", "student"), ``token`` and ``on``: how much of token ``on`` is in
        the output at ``token``. `dotphase.plot.attention` draws it.

    Examples
    --------
    >>> solution = dp.solve(dp.positional_semantic(), alpha=2.0, log2_points=12)
    >>> matrices = dp.attention(solution)
    >>> matrices.sel(who="student").sum("on").round(6).values.tolist()
    [1.0, 1.0]
    """
    model = solution.model
    refuse(model, "attention", "loss", "latent", "correlation", "noise")
    dims = model.length * (model.student_rank + model.teacher_rank)
    if sentence is None:
        points = normal_points(dims, SENTENCES, np.random.default_rng(0)).T
    else:
        number = validation.integer("sentence", sentence, at_least=0, at_most=LAST_SENTENCE)
        points = np.random.default_rng([1, number]).standard_normal((dims, 1))
    fields = draw_fields(model, solution.overlaps, jnp.asarray(points))
    student = fields.omega.reshape(model.length, model.student_rank, -1)
    functions = {"teacher": (model.teacher, fields.h), "student": (model.student, student)}
    rows = [
        np.asarray(call_many(function, jnp.moveaxis(h, -1, 0))).mean(axis=0)
        for function, h in functions.values()
    ]
    places = np.arange(1, model.length + 1)
    found = xr.DataArray(
        np.stack(rows),
        coords={"who": list(functions), "token": places, "on": places},
        dims=("who", "token", "on"),
        name="attention",
        attrs={"long_name": "attention weight", "units": "1", "alpha": solution.alpha},
    )
    return found


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
    refuse(model, "an attention matrix", "loss")
    columns = {"teacher": model.teacher_rank} | dict.fromkeys(overlaps, model.student_rank)
    many, one = np.random.default_rng(0), np.random.default_rng([1, sentence])

    def draw(rng: np.random.Generator, count: int) -> dict[str, np.ndarray]:
        size = (count, model.length)
        return {name: rng.standard_normal((*size, wide)) for name, wide in columns.items()}

    noise, drawn = draw(many, SENTENCES), draw(one, 1)
    result = {}
    for kind, normal in (("mean", noise), ("sample", drawn)):
        h = model.sigma[:, None] * normal["teacher"]
        result[kind] = {"teacher": np.asarray(call_many(model.teacher, h)).mean(axis=0)}
        for name, given in overlaps.items():
            if given is not None:
                theta, m, q = (np.asarray(part) for part in (given.theta, given.m, given.q))
                fields = _fields(model, theta, m, q, h, normal[name])
                result[kind][name] = np.asarray(call_many(model.student, fields)).mean(axis=0)
    return result


@in_double_precision
def attention_along(
    model: Model,
    theta: Float[np.ndarray, "steps tokens"],
    m: Float[np.ndarray, "steps tokens"],
    q: Float[np.ndarray, "steps tokens"],
    sentences: int,
) -> dict[str, dict[str, Any]]:
    """Attention of the teacher, and of a student of rank one at every step of its training.

    For both the ``mean``, (L, L) and (steps, L, L), and ``sample``, with an axis before of the
    first `sentences` of `attention_matrices`. What a sentence has outside of Q* is drawn once for
    all steps, so that only the overlaps change.
    """
    shape, rows = (model.length, 1), (len(theta), 1, model.length, 1)
    square = (*rows, 1)
    dims = 2 * model.length
    points = normal_points(dims, POINTS, np.random.default_rng(0)).reshape(-1, 2, *shape)
    seeds = (np.random.default_rng([1, number]) for number in range(sentences))
    drawn = np.stack([one.standard_normal((2, *shape)) for one in seeds])
    # Points first: the average is over them, the sampled sentences follow.
    h, z = np.concatenate([points, drawn]).swapaxes(0, 1)
    h = model.sigma[:, None] * h
    fields = _fields(model, theta.reshape(square), m.reshape(rows), q.reshape(square), h, z)
    students = np.asarray(call_many(model.student, fields.reshape(-1, *shape)))
    students = students.reshape(len(theta), len(h), *students.shape[1:])
    teacher = np.asarray(call_many(model.teacher, h))
    return {
        "teacher": {"mean": teacher[:POINTS].mean(axis=0), "sample": teacher[POINTS:]},
        "student": {
            "mean": students[:, :POINTS].mean(axis=1),
            "sample": students[:, POINTS:].swapaxes(0, 1),
        },
    }


def _fields(
    model: Model,
    theta: Float[np.ndarray, "*steps tokens r t"],
    m: Float[np.ndarray, "*steps tokens r"],
    q: Float[np.ndarray, "*steps tokens r r"],
    h: Float[np.ndarray, "n tokens t"],
    z: Float[np.ndarray, "n tokens r"],
) -> Float[np.ndarray, "..."]:
    along = theta / np.asarray(model.rho)[:, None, None]
    rest = q - along @ theta.swapaxes(-1, -2)
    values, vectors = np.linalg.eigh(rest)
    root = vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]
    root = root @ vectors.swapaxes(-1, -2)
    return np.asarray(m + (along @ h[..., None] + root @ z[..., None])[..., 0])
