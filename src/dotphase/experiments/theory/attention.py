"""Attention matrices of the teacher and of both branches: means over sentences, and samples.

In the limit of large d a sentence enters through its projections only: on the teacher, h* with
variance sigma^2, and on a student with overlaps (q, m, theta),

    h = m + theta h*/sigma^2 + (q - theta theta^T/sigma^2)^{1/2} z,   z standard normal,

token by token. A sampled sentence is one draw of h* and z. All branches share h*; each has its own
z, for the directions outside of Q*.
"""

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

#: Sentences of a mean; its error is about .002 per entry.
SENTENCES = 2**14
#: Quasi-random sentences of a mean along a training; its error is about as large.
TRAINING_SENTENCES = 2**11
#: Largest number of a sampled sentence.
LAST_SENTENCE = 999_999


@in_double_precision
def attention(solution: Solution, *, sentence: int | None = None) -> xr.DataArray:
    """Compute the attention of the teacher and of a solved student.

    Parameters
    ----------
    solution : Solution
        From `dotphase.solve`; any ranks and lengths.
    sentence : int, optional
        Number of a sampled sentence; the mean over all sentences by default.

    Returns
    -------
    xarray.DataArray
        Over ``who`` ("teacher", "student"), ``token`` and ``on``: the weight of token ``on`` in the
        output at ``token``. `dotphase.plot.attention` draws it.

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
    tokens = np.arange(1, model.length + 1)
    return xr.DataArray(
        np.stack(rows),
        coords={"who": list(functions), "token": tokens, "on": tokens},
        dims=("who", "token", "on"),
        name="attention",
        attrs={"long_name": "attention weight", "units": "1", "alpha": solution.alpha},
    )


@in_double_precision
def attention_matrices(
    model: Model, overlaps: dict[str, Overlaps | None], sentence: int
) -> dict[str, Any]:
    """Compute the mean and a sample of the attention of the teacher and of every student.

    Parameters
    ----------
    overlaps : dict
        Overlaps of each student; students without overlaps are omitted.
    sentence : int
        Number of the sampled sentence.

    Returns
    -------
    dict
        For "mean" and "sample" an (L, L) array of the teacher and of each student.

    Examples
    --------
    >>> solution = dp.solve(dp.positional_semantic(), alpha=2.0, log2_points=12)
    >>> students = {"student": solution.overlaps}
    >>> matrices = dp.analysis.attention_matrices(solution.model, students, 0)
    >>> matrices["mean"]["student"].shape
    (2, 2)
    """
    refuse(model, "an attention matrix", "loss")
    columns = {"teacher": model.teacher_rank} | dict.fromkeys(overlaps, model.student_rank)

    def draw(rng: np.random.Generator, count: int) -> dict[str, np.ndarray]:
        size = (count, model.length)
        return {name: rng.standard_normal((*size, rank)) for name, rank in columns.items()}

    draws = {
        "mean": draw(np.random.default_rng(0), SENTENCES),
        "sample": draw(np.random.default_rng([1, sentence]), 1),
    }
    result: dict[str, Any] = {}
    for kind, normal in draws.items():
        h = model.sigma[:, None] * normal["teacher"]
        result[kind] = {"teacher": np.asarray(call_many(model.teacher, h)).mean(axis=0)}
        for name, student in overlaps.items():
            if student is not None:
                theta, m, q = (np.asarray(part) for part in (student.theta, student.m, student.q))
                fields = _student_fields(model, theta, m, q, h, normal[name])
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
    """Compute the attention of the teacher, and of a student of rank one along its training.

    For both the ``mean``, (L, L) and (steps, L, L), and ``sample``, with a leading axis for the
    first `sentences` sentences of `attention_matrices`. The fields outside of Q* are drawn once for
    all steps, so that only the overlaps change.
    """
    shape, rows = (model.length, 1), (len(theta), 1, model.length, 1)
    square = (*rows, 1)
    dims = 2 * model.length
    points = normal_points(dims, TRAINING_SENTENCES, np.random.default_rng(0)).reshape(
        -1, 2, *shape
    )
    generators = [np.random.default_rng([1, number]) for number in range(sentences)]
    samples = np.stack([rng.standard_normal((2, *shape)) for rng in generators])
    # The mean is over the points, which come first; the sampled sentences follow.
    h, z = np.concatenate([points, samples]).swapaxes(0, 1)
    h = model.sigma[:, None] * h
    fields = _student_fields(model, theta.reshape(square), m.reshape(rows), q.reshape(square), h, z)
    students = np.asarray(call_many(model.student, fields.reshape(-1, *shape)))
    students = students.reshape(len(theta), len(h), *students.shape[1:])
    teacher = np.asarray(call_many(model.teacher, h))
    return {
        "teacher": {
            "mean": teacher[:TRAINING_SENTENCES].mean(axis=0),
            "sample": teacher[TRAINING_SENTENCES:],
        },
        "student": {
            "mean": students[:, :TRAINING_SENTENCES].mean(axis=1),
            "sample": students[:, TRAINING_SENTENCES:].swapaxes(0, 1),
        },
    }


def _student_fields(
    model: Model,
    theta: Float[np.ndarray, "*steps tokens r t"],
    m: Float[np.ndarray, "*steps tokens r"],
    q: Float[np.ndarray, "*steps tokens r r"],
    h: Float[np.ndarray, "n tokens t"],
    z: Float[np.ndarray, "n tokens r"],
) -> Float[np.ndarray, "..."]:
    """Fields of a student from its overlaps, the fields h of the teacher, and noise z."""
    aligned = theta / np.asarray(model.rho)[:, None, None]
    values, vectors = np.linalg.eigh(q - aligned @ theta.swapaxes(-1, -2))
    root = vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]
    root = root @ vectors.swapaxes(-1, -2)
    return np.asarray(m + (aligned @ h[..., None] + root @ z[..., None])[..., 0])
