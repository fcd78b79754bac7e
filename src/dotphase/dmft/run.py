"""`dynamics`: what gradient descent does at every step when d grows, and how well that is known."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Unpack

import numpy as np
from jaxtyping import Array, Float

from dotphase.config import validation
from dotphase.config.settings import replace_fields
from dotphase.config.step_sizes import StepSize, check_batch_fraction, check_momentum, step_sizes
from dotphase.dmft.ensemble import Descent, Repetition, repeat_many
from dotphase.dmft.initialization import at_dimension, in_the_limit
from dotphase.dmft.kernel import Beginning
from dotphase.dmft.result import QUANTITIES, PathOverlaps, Trajectory
from dotphase.dmft.settings import DynamicsFields, DynamicsSettings
from dotphase.errors import InvalidInput
from dotphase.finite_d.datasets import check_dtype, count_sentences
from dotphase.finite_d.initialization import (
    PrescribedStart,
    StartFunction,
    resolve_start,
    start_components,
    start_name,
)
from dotphase.model import Model
from dotphase.model.definition import refuse, refuse_spectrum

#: Most steps: the memory of what was seen grows with their square.
MOST_STEPS = 2**20
#: A loss this many times the one at the start has diverged.
BLOWN_UP = 1e3
#: No smaller relative standard error is claimed: a few repetitions do not tell their spread
#: exactly.
LEAST = 1e-4
#: Repetitions disagree that are further apart than this share of the largest value that a
#: quantity could have.
APART = 0.1

Steps = Float[np.ndarray, " steps"]


def dynamics(
    model: Model,
    alpha: float,
    start: str | PrescribedStart | StartFunction = "semantic",
    *,
    steps: int,
    lr: StepSize,
    momentum: float = 0.0,
    batch_fraction: float = 1.0,
    scale: float | None = None,
    d: int | None = None,
    settings: DynamicsSettings | None = None,
    on_repetition: Callable[[], None] | None = None,
    **changes: Unpack[DynamicsFields],
) -> Trajectory:
    """Training loss, test error and overlaps at every step of gradient descent.

    In the limit of large d they are the same for every data set, whatever the minima are like:
    dynamical mean-field theory. A step is ``Q <- Q - lr * gradient + momentum * (last step)``, with
    the gradient of ``sum |y - f|^2/(2d) + (ridge/2) |Q|^2``, as in `train`.

    Parameters
    ----------
    model : Model
        Teacher, student and data, with white tokens.
    alpha : float
        Sentences per dimension.
    start : {"semantic", "positional", "mixed", "random"}, `start_from` or callable
        Where to begin. The positional start has ``|Q|^2 = d`` here. Random weights have no overlaps
        in the limit, and never get any; at finite d they do. Functions need d.
    steps : int
        Steps.
    lr : float, sequence or callable
        Size of a step; of each step; or as a function of its number, from 0 on.
    momentum : float in [0, 1)
        Share of the last step that is added.
    batch_fraction : float in (0, 1]
        Share of the sentences that a step sees, drawn anew for each.
    scale : float, optional
        Standard deviation of the entries of a random start, .1 if not given.
    d : int, optional
        Dimension at which everything random is drawn, ``n = round(alpha d)`` sentences, with the
        loss of the limit; every repetition is then another data set and start.
    settings : DynamicsSettings, optional
        Sizes of the ensembles and the accuracy asked for.
    on_repetition : callable, optional
        Called when a repetition is done.
    **changes
        Fields of `DynamicsSettings` that are to differ from `settings`: log2_ensemble,
        repetitions, rtol, most, seed, dtype.

    Returns
    -------
    Trajectory
        Every number at every step with its standard error, and how far it is to be trusted.

    Examples
    --------
    >>> small = {"log2_ensemble": 8, "repetitions": 2, "rtol": None}
    >>> path = dp.dynamics(dp.positional_semantic(), alpha=2.0, steps=5, lr=8.0, **small)
    >>> bool(path.train_loss[-1] < path.train_loss[0])
    True
    """
    began = time.perf_counter()
    settings = replace_fields(settings or DynamicsSettings(), changes)
    refuse_spectrum(model, "the dynamics")
    refuse(model, "the dynamics", "latent", "correlation")
    alpha = validation.number("alpha", alpha, above=0)
    sizes = step_sizes(lr, validation.integer("steps", steps, at_least=1, at_most=MOST_STEPS))
    sentences = None if d is None else count_sentences(model, alpha, d)
    descent = Descent(
        model=model,
        alpha=alpha,
        begin=_begin(model, start, scale, d),
        d=d,
        lr=sizes,
        momentum=check_momentum(momentum),
        batch_fraction=check_batch_fraction(batch_fraction),
        dtype=check_dtype(settings.dtype),
        seed=settings.seed,
    )
    if sentences is not None and sentences * min(1.0, 1 / alpha) <= descent.least_sentences / 2:
        rule = f"must be larger for {steps} steps: use {2 * descent.least_sentences} or more"
        raise InvalidInput("d", d, rule)
    found = _enough(descent, sentences, settings, on_repetition or (lambda: None))
    return _trajectory(descent, start_name(start), settings, found, time.perf_counter() - began)


def _begin(
    model: Model, start: str | PrescribedStart | StartFunction, scale: float | None, d: int | None
) -> Callable[[Array], Beginning]:
    """From the key of a repetition to where it begins."""
    if d is not None:
        drawn, dimension = resolve_start(model, start, scale), d
        return lambda key: at_dimension(model, drawn, dimension, key)
    if not isinstance(start, str | PrescribedStart):
        raise InvalidInput(
            "start", start_name(start), "must be a name or overlaps unless d is given"
        )
    parts = start_components(model, start, scale)
    return lambda key: in_the_limit(model, parts)


class _Averages(NamedTuple):
    """Ensembles of one size: every quantity for each repetition, and the repetitions."""

    sentences: int
    samples: dict[str, Float[np.ndarray, "repetitions steps"]]
    repetitions: list[Repetition]

    def mean(self, name: str) -> Steps:
        return np.asarray(self.samples[name].mean(axis=0))

    def variance(self, name: str) -> Steps:
        """Of the mean."""
        rows = self.samples[name]
        if len(rows) < 2:
            return np.full(rows.shape[1], np.nan)
        return np.asarray(rows.var(axis=0, ddof=1) / len(rows))


class _Found(NamedTuple):
    """The largest ensembles, those of half their size if there are any, and standard errors."""

    averages: _Averages
    smaller: _Averages | None
    stderr: dict[str, Steps]

    def limit(self, mean: Callable[[_Averages], np.ndarray]) -> np.ndarray:
        """A mean for ensembles of any size: what their size shifts falls like 1/N."""
        large = mean(self.averages)
        return large if self.smaller is None else 2 * large - mean(self.smaller)


def _enough(
    descent: Descent,
    sentences: int | None,
    settings: DynamicsSettings,
    on_repetition: Callable[[], None],
) -> _Found:
    """Ensembles large enough for the accuracy asked for; at finite d those that there are."""

    def averages(count: int) -> _Averages:
        found = repeat_many(descent, count, settings.repetitions, on_repetition)
        return _Averages(count, _samples(descent.model, found), found)

    level = max(settings.log2_ensemble, (descent.least_sentences - 1).bit_length())
    if sentences is not None or settings.rtol is None:
        only = averages(sentences or 2**level)
        return _Found(only, None, {name: np.sqrt(only.variance(name)) for name in QUANTITIES})
    smaller, larger = averages(2 ** (level - 1)), averages(2**level)
    while True:
        stderr = {name: _standard_error(smaller, larger, name) for name in QUANTITIES}
        found = _Found(larger, smaller, stderr)
        ended = level >= settings.max_log2_ensemble or _first_diverged(larger) is not None
        if ended or _accurate(found, settings.rtol):
            return found
        level += 1
        smaller, larger = larger, averages(2**level)


def _samples(model: Model, found: list[Repetition]) -> dict[str, Float[np.ndarray, "r s"]]:
    rho = float(model.rho[0])
    rows = [
        {
            "train_loss": one.records.train_loss,
            "test_error": one.test_error,
            "theta": rho * np.linalg.norm(one.records.theta, axis=(1, 2)),
            "m": np.linalg.norm(one.records.m[:, 0], axis=1),
            "q": rho * np.linalg.norm(one.records.C, axis=(1, 2)),
        }
        for one in found
    ]
    return {name: np.stack([np.asarray(row[name]) for row in rows]) for name in QUANTITIES}


def _standard_error(smaller: _Averages, larger: _Averages, name: str) -> Steps:
    """That of a mean which is continued to ensembles of any size."""
    with np.errstate(invalid="ignore", over="ignore"):
        spread = 4 * larger.variance(name) + smaller.variance(name)
        return np.asarray(np.sqrt(spread + (LEAST * larger.mean(name)) ** 2))


def _accurate(found: _Found, rtol: float) -> bool:
    """Whether every standard error is small against the largest value of its quantity."""
    return all(
        bool(np.all(error <= rtol * np.max(np.abs(found.averages.mean(name))) + 1e-12))
        for name, error in found.stderr.items()
    )


def _first_diverged(averages: _Averages) -> int | None:
    """The first step at which the loss of some repetition is out of bounds."""
    loss = averages.samples["train_loss"]
    out = ~(loss <= BLOWN_UP * np.abs(loss[:, :1]) + np.finfo(float).tiny)
    where = np.flatnonzero(out.any(axis=0))
    return int(where[0]) if where.size else None


def _trusted_until(descent: Descent, found: _Found, diverged: int | None) -> int:
    """The last step before which all repetitions do the same.

    At finite d they are different data sets, which need not agree.
    """
    last = len(descent.lr) if diverged is None else diverged - 1
    if descent.d is not None:
        return last
    rho, longest = float(descent.model.rho[0]), float(descent.model.positions[0, 0])
    samples = {name: rows[:, : last + 1] for name, rows in found.averages.samples.items()}
    sizes = {name: np.abs(rows).max(axis=0) for name, rows in samples.items()}
    # As large as q allows: relative to themselves, overlaps of nearly nothing are always noisy.
    sizes["theta"], sizes["m"] = np.sqrt(rho * sizes["q"]), np.sqrt(longest / rho * sizes["q"])
    apart = [
        np.maximum(np.ptp(rows, axis=0), 2 * np.nan_to_num(found.stderr[name][: last + 1]))
        > APART * np.maximum.accumulate(sizes[name]) + 1e-12
        for name, rows in samples.items()
    ]
    where = np.flatnonzero(np.any(apart, axis=0))
    return int(where[0]) - 1 if where.size else last


def _trajectory(
    descent: Descent, start: str, settings: DynamicsSettings, found: _Found, seconds: float
) -> Trajectory:
    model, averages = descent.model, found.averages
    rho = np.asarray(model.rho)
    diverged = _first_diverged(averages)
    trusted = _trusted_until(descent, found, diverged)
    accurate = settings.rtol is None or descent.d is not None or _accurate(found, settings.rtol)

    def mean(name: str) -> np.ndarray:
        return found.limit(
            lambda some: np.mean([getattr(one.records, name) for one in some.repetitions], axis=0)
        )

    with np.errstate(invalid="ignore", over="ignore"):
        theta, m, C, gradient = (mean(name) for name in ("theta", "m", "C", "gradient"))
        values = {name: found.limit(partial(_Averages.mean, name=name)) for name in QUANTITIES}
        if descent.d is None:  # norms of mean overlaps, not means of norms
            values["theta"] = rho[0] * np.linalg.norm(theta, axis=(1, 2))
            values["m"] = np.linalg.norm(m[:, 0], axis=1)
    return Trajectory(
        model=model,
        alpha=descent.alpha,
        start=start,
        momentum=descent.momentum,
        batch_fraction=descent.batch_fraction,
        d=descent.d,
        lr=descent.lr,
        steps=np.arange(len(descent.lr) + 1),
        **values,
        gradient_norm=gradient,
        overlaps=PathOverlaps(
            rho[:, None, None] * theta[:, None], m, rho[:, None, None] * C[:, None]
        ),
        stderr=found.stderr,
        samples=averages.samples,
        trusted_until=trusted,
        diverged_at=diverged,
        accurate=accurate,
        message=_message(diverged, trusted, len(descent.lr), accurate, settings.rtol),
        sentences=averages.sentences,
        repetitions=len(averages.repetitions),
        seed=descent.seed,
        seconds=seconds,
    )


def _message(
    diverged: int | None, trusted: int, steps: int, accurate: bool, rtol: float | None
) -> str:
    if diverged is not None:
        return f"diverged at step {diverged}: use smaller steps (lr)"
    if trusted < steps:
        return f"NOT TRUSTED after step {trusted}: the repetitions disagree from there on"
    if not accurate:
        return f"trusted, but standard errors above rtol = {rtol:g}: use larger ensembles"
    return "trusted: the repetitions agree"
