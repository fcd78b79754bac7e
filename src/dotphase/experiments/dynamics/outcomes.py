"""What gradient descent finds from random starts at any d, by its dynamics.

A random start of d entries of standard deviation s has overlaps of order ``s/sqrt d`` with Q* and
with the positions, and so have the forces of n sentences on them. Without them the symmetries of
the model would keep theta and m at zero for ever; which of them wins is decided by how they grow.
The dynamics draws of every matrix only what a descent looks at, so that d may be far larger than
in training.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import numpy as np
import xarray as xr

from dotphase.config import validation
from dotphase.dmft.ensemble import Repetition, run_repetitions
from dotphase.dmft.run import define_descent
from dotphase.dmft.settings import DynamicsSettings
from dotphase.errors import InvalidInput
from dotphase.finite_d.datasets import count_sentences
from dotphase.finite_d.overlaps import mechanisms_of, positional_alignment
from dotphase.model import Model
from dotphase.runtime.progress import ProgressCallback, ProgressCounter
from dotphase.storage.provenance import provenance

#: Size of a step at alpha up to 2; beyond, it falls like 1/alpha as the curvature grows.
STEP = 4.0
#: Chance alignment that counts at most: beyond this d, alignments as small are still nothing.
JUDGED = 10_000

_NUMBERS = {
    "train_loss": "training loss per dimension at the end",
    "test_error": "test error at the end",
    "m": "norm of m of token 1",
    "theta": "norm of theta of token 1",
    "q": "norm of q of token 1",
    "semantic_alignment": "|Q^T Q*|/(|Q| |Q*|)",
    "positional_alignment": "m/sqrt(m^2 + q)",
    "gradient_norm": "norm of the gradient over sqrt d at the end",
}


def outcomes(
    model: Model,
    alphas: Sequence[float],
    scales: Sequence[float],
    d: int,
    *,
    draws: int = 16,
    steps: int = 127,
    lr: float | None = None,
    momentum: float = 0.8,
    batch_fraction: float = 1.0,
    seed: int = 0,
    dtype: str = "float64",
    progress: ProgressCallback | None = None,
) -> xr.Dataset:
    """What gradient descent finds from random starts, for d far beyond training.

    Every descent has sentences and a start of its own, drawn at dimension d as for
    `dotphase.basins`, of which no more is drawn than it sees: memory and time grow with
    ``n = alpha d``, not with ``n d``.

    Parameters
    ----------
    model : Model
        Teacher, student and data, with white tokens.
    alphas, scales : sequences of float
        Sentences per dimension, and standard deviations s of the weights at the start.
    d : int
        Dimension of a token.
    draws : int
        Data sets, each with its own random start, for each alpha and scale.
    steps : int
        Steps.
    lr : float, optional
        Size of a step, ``4 min(1, 2/alpha)`` if not given.
    momentum, batch_fraction : as for `dotphase.dynamics`
    seed : int
        Seed of everything random.
    dtype : {"float64", "float32"}
        Precision in which the history is kept.
    progress : callable, optional
        Called with a `ProgressEvent` after each descent.

    Returns
    -------
    xarray.Dataset
        Over alpha, seed and scale, with the `mechanism` of every descent, as `dotphase.basins`
        has it for trained students; `dotphase.analysis.basin_shares` counts them.

    Examples
    --------
    >>> small = {"d": 200, "draws": 2, "steps": 15}
    >>> found = dp.analysis.outcomes(dp.positional_semantic(), [2.0], [0.1], **small)
    >>> found["mechanism"].dims
    ('alpha', 'seed', 'scale')
    """
    places = [validation.number("alpha", alpha, above=0) for alpha in alphas]
    widths = [validation.number("scale", scale, above=0) for scale in scales]
    d, draws = (
        validation.integer("d", d, at_least=2),
        validation.integer("draws", draws, at_least=1),
    )
    # Every step sees as many new directions; half of all are left unseen.
    least = (
        2 * model.length * model.student_rank * (validation.integer("steps", steps, at_least=1) + 1)
    )
    shape = (len(places), draws, len(widths))
    values = {name: np.full(shape, np.nan) for name in _NUMBERS}
    counter = ProgressCounter("descents from random starts", int(np.prod(shape)), progress)
    for i, alpha in enumerate(places):
        size = STEP * min(1.0, 2 / alpha) if lr is None else lr
        for j, scale in enumerate(widths):
            settings = DynamicsSettings(
                momentum=momentum,
                batch_fraction=batch_fraction,
                scale=scale,
                seed=seed,
                dtype=dtype,
            )
            descent = define_descent(
                model, alpha, "random", steps=steps, lr=size, d=d, settings=settings
            )
            sentences = count_sentences(model, alpha, d)
            if min(sentences, d) < least:
                rule = f"must be larger for {steps} steps: {least} or more, and sentences too"
                raise InvalidInput("d", d, rule)
            found = run_repetitions(descent, sentences, draws, counter)
            for k, one in enumerate(found):
                for name, value in _numbers(model, one).items():
                    values[name][i, k, j] = value
    asked = {"d": d, "steps": steps, "lr": lr, "momentum": momentum,
             "batch_fraction": batch_fraction, "seed": seed}  # fmt: skip
    dataset = xr.Dataset(
        coords={"alpha": places, "scale": widths}, attrs=provenance(model, **asked)
    )
    axes = ("alpha", "seed", "scale")
    for name, text in _NUMBERS.items():
        dataset[name] = (axes, values[name], {"description": text})
    dataset["mechanism"] = (axes, mechanisms_of(values, min(d, JUDGED)))
    dataset["mechanism"].attrs["description"] = "what the student has learned"
    return dataset


def _numbers(model: Model, one: Repetition) -> dict[str, float]:
    """What is kept of a descent: its last step."""
    rho, last = float(model.rho[0]), jax.tree.map(lambda part: part[-1], one.records)
    theta, m = float(np.linalg.norm(last.theta)), float(np.linalg.norm(last.m[0]))
    size = float(np.trace(last.C))
    q, tiny = rho * float(np.linalg.norm(last.C)), np.finfo(float).tiny
    return {
        "train_loss": float(last.train_loss),
        "test_error": float(one.test_error[-1]),
        "m": m,
        "theta": rho * theta,
        "q": q,
        "semantic_alignment": theta / (np.sqrt(size * model.teacher_rank) + tiny),
        "positional_alignment": positional_alignment(m, q),
        "gradient_norm": float(last.gradient),
    }
