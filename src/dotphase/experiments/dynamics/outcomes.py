"""Mechanisms that gradient descent reaches from random starts at any d, by its dynamics.

A random start with d entries of standard deviation s has overlaps of order ``s/sqrt d`` with Q* and
with the positions, and the forces of n sentences on these overlaps are as small. Without both,
theta and m would remain zero by the symmetries of the model; their growth decides which one wins.
The dynamics draws matrices only along the directions of the descent, so that d may be far larger
than in training.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Unpack

import jax
import numpy as np
import xarray as xr

from dotphase.config import validation
from dotphase.config.settings import replace_fields
from dotphase.config.step_sizes import StepSize
from dotphase.dmft.ensemble import Repetition, run_repetitions
from dotphase.dmft.run import define_descent
from dotphase.dmft.settings import DynamicsFields, DynamicsSettings
from dotphase.errors import InvalidInput
from dotphase.finite_d.datasets import count_sentences
from dotphase.finite_d.overlaps import mechanisms_of, positional_alignment
from dotphase.model import Model
from dotphase.runtime.progress import Progress, ProgressCounter
from dotphase.storage.provenance import provenance

#: Step size up to alpha = 2; beyond, it falls like 1/alpha as the curvature grows.
LR = 4.0
#: Default momentum.
SETTINGS = DynamicsSettings(momentum=0.8)
#: Largest d for the threshold of an alignment by chance.
MAX_CHANCE_D = 10_000

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
    seeds: int = 16,
    steps: int = 127,
    lr: StepSize | None = None,
    progress: Progress = None,
    settings: DynamicsSettings | None = None,
    **changes: Unpack[DynamicsFields],
) -> xr.Dataset:
    """Compute the mechanisms that gradient descent reaches from random starts, for very large d.

    Every descent has its own sentences and start, drawn at dimension d as for `dotphase.basins`,
    but only along the directions of the descent: memory and time grow with ``n = alpha d``, not
    with ``n d``.

    Parameters
    ----------
    model : Model
        Teacher, student and data, with white tokens.
    alphas, scales : sequences of float
        Sentences per dimension, and standard deviations s of the initial weights.
    d : int
        Dimension of a token.
    seeds : int
        Data sets, each with its own random start, for each alpha and scale.
    steps : int
        Number of steps.
    lr : float, sequence or callable, optional
        Step size; by default ``4 min(1, 2/alpha)``.
    progress : bool or callable, optional
        Receives an event after each descent (`dotphase.results.ProgressEvent`).
    settings, **changes
        As for `dotphase.dynamics`, with a momentum of .8 by default. Sizes of ensembles and rtol
        have no effect.

    Returns
    -------
    xarray.Dataset
        Over alpha, seed and scale, with the `mechanism` of every descent, as `dotphase.basins`
        for trained students; `dotphase.analysis.basin_shares` counts them.

    Examples
    --------
    >>> small = {"d": 200, "seeds": 2, "steps": 15}
    >>> runs = dp.analysis.outcomes(dp.positional_semantic(), [2.0], [0.1], **small)
    >>> runs["mechanism"].dims
    ('alpha', 'seed', 'scale')
    """
    if "scale" in changes:
        raise InvalidInput("scale", changes["scale"], "must not be given: use scales")
    settings = replace_fields(settings or SETTINGS, changes)
    checked = [validation.number("alpha", alpha, above=0) for alpha in alphas]
    deviations = [validation.number("scale", scale, above=0) for scale in scales]
    d = validation.integer("d", d, at_least=2)
    seeds = validation.integer("seeds", seeds, at_least=1)
    # Every step needs new directions; at most half of all are used.
    needed = 2 * model.length * model.student_rank
    needed *= validation.integer("steps", steps, at_least=1) + 1
    shape = (len(checked), seeds, len(deviations))
    values = {name: np.full(shape, np.nan) for name in _NUMBERS}
    counter = ProgressCounter("descents from random starts", int(np.prod(shape)), progress)
    for i, alpha in enumerate(checked):
        size = LR * min(1.0, 2 / alpha) if lr is None else lr
        for j, scale in enumerate(deviations):
            scaled = replace(settings, scale=scale)
            descent = define_descent(
                model, alpha, "random", steps=steps, lr=size, d=d, settings=scaled
            )
            sentences = count_sentences(model, alpha, d)
            if min(sentences, d) < needed:
                rule = f"must be larger for {steps} steps: {needed} or more, and sentences too"
                raise InvalidInput("d", d, rule)
            for k, repetition in enumerate(run_repetitions(descent, sentences, seeds, counter)):
                for name, value in _measure(model, repetition).items():
                    values[name][i, k, j] = value
    config = {
        name: getattr(settings, name)
        for name in ("momentum", "batch_fraction", "seed", "teacher_norm")
    }
    dataset = xr.Dataset(
        coords={"alpha": checked, "scale": deviations},
        attrs=provenance(model, d=d, steps=steps, lr=lr, **config),
    )
    axes = ("alpha", "seed", "scale")
    for name, text in _NUMBERS.items():
        dataset[name] = (axes, values[name], {"description": text})
    dataset["mechanism"] = (axes, mechanisms_of(values, min(d, MAX_CHANCE_D)))
    dataset["mechanism"].attrs["description"] = "mechanism of the student"
    return dataset


def _measure(model: Model, repetition: Repetition) -> dict[str, float]:
    """Losses, overlaps and alignments at the last step."""
    rho, last = float(model.rho[0]), jax.tree.map(lambda part: part[-1], repetition.records)
    theta, m = float(np.linalg.norm(last.theta)), float(np.linalg.norm(last.m[0]))
    size = float(np.trace(last.C))
    q, tiny = rho * float(np.linalg.norm(last.C)), np.finfo(float).tiny
    return {
        "train_loss": float(last.train_loss),
        "test_error": float(repetition.test_error[-1]),
        "m": m,
        "theta": rho * theta,
        "q": q,
        "semantic_alignment": theta / (np.sqrt(size * model.teacher_rank) + tiny),
        "positional_alignment": positional_alignment(m, q),
        "gradient_norm": float(last.gradient),
    }
