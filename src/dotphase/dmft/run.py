"""`dynamics`: gradient descent at every step in the limit of large d, with standard errors."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Unpack

import numpy as np
from jaxtyping import Array, Float

from dotphase.config import validation
from dotphase.config.settings import replace_fields
from dotphase.config.step_sizes import StepSize, step_sizes
from dotphase.dmft.conditioned_descent import Initialization
from dotphase.dmft.ensemble import Descent, Repetition, run_repetitions
from dotphase.dmft.initialization import (
    finite_d_initialization,
    free_directions,
    limit_initialization,
    warn_if_fixed,
)
from dotphase.dmft.result import QUANTITIES, PathOverlaps, Trajectory
from dotphase.dmft.settings import DynamicsFields, DynamicsSettings
from dotphase.errors import InvalidInput
from dotphase.finite_d.datasets import check_dtype, count_sentences
from dotphase.finite_d.initialization import (
    PrescribedStart,
    StartFunction,
    position_modes,
    resolve_start,
    start_components,
    start_name,
)
from dotphase.model import Model
from dotphase.model.definition import refuse, refuse_spectrum
from dotphase.runtime.progress import Progress, ProgressCounter

#: Largest number of steps; the memory of the history grows with its square.
MAX_STEPS = 2**20
#: Ratio of the loss to the initial loss above which a descent has diverged.
DIVERGED = 1e3
#: Smallest relative standard error that is reported, as few repetitions underestimate their spread.
MIN_ERROR = 1e-4
#: Largest distance between repetitions that agree, relative to the range of a quantity.
AGREEMENT = 0.1

Steps = Float[np.ndarray, " steps"]


def dynamics(
    model: Model,
    alpha: float,
    start: str | PrescribedStart | StartFunction = "semantic",
    *,
    d: int | None = None,
    steps: int,
    lr: StepSize,
    progress: Progress = None,
    settings: DynamicsSettings | None = None,
    **changes: Unpack[DynamicsFields],
) -> Trajectory:
    """Compute training loss, test error and overlaps at every step of gradient descent.

    In the limit of large d they are the same for every data set, and dynamical mean-field theory
    gives them. It does not assume anything about the minima. A step is
    ``Q <- Q - lr * gradient + momentum * (previous step)``, with the gradient of
    ``sum |y - f|^2/(2d) + (ridge/2) |Q|^2``, as in `train`.

    Parameters
    ----------
    model : Model
        Teacher, student and data, with white tokens.
    alpha : float
        Sentences per dimension.
    start : {"semantic", "positional", "mixed", "random"}, `start_from` or callable
        Initialization of the weights. The positional one has ``|Q|^2 = d`` here. Random weights
        have no overlaps with teacher or positions in the limit and never gain any; at finite d they
        do. Functions need d.
    d : int, optional
        Dimension of all random draws, with ``n = round(alpha d)`` sentences and the loss of the
        limit. Every repetition is then another data set and start.
    steps : int
        Number of steps.
    lr : float, sequence or callable
        Step size, a list with one for each step, or a function of the step number (from 0 on).
    progress : callable, optional
        Called with a `ProgressEvent` after each repetition.
    settings : `dotphase.analysis.DynamicsSettings`, optional
        Update rule, sizes of the ensembles and requested accuracy.
    **changes
        Fields of `DynamicsSettings` to replace in `settings`: momentum, batch_fraction, scale,
        log2_ensemble, repetitions, rtol, max_log2_ensemble, seed, dtype.

    Returns
    -------
    Trajectory
        All quantities at every step with standard errors, and the last trusted step.

    Examples
    --------
    >>> small = {"log2_ensemble": 8, "repetitions": 2, "rtol": None}
    >>> path = dp.dynamics(dp.positional_semantic(), alpha=2.0, steps=5, lr=8.0, **small)
    >>> bool(path.train_loss[-1] < path.train_loss[0])
    True
    """
    started = time.perf_counter()
    settings = replace_fields(settings or DynamicsSettings(), changes)
    descent = define_descent(model, alpha, start, steps=steps, lr=lr, d=d, settings=settings)
    sentences = None if d is None else count_sentences(model, alpha, d)
    if sentences is not None and sentences * min(1.0, 1 / alpha) <= descent.min_sentences / 2:
        rule = f"must be larger for {steps} steps: use {2 * descent.min_sentences} or more"
        raise InvalidInput("d", d, rule)
    estimate = _estimate(descent, sentences, settings, progress)
    return _trajectory(
        descent, start_name(start), settings, estimate, time.perf_counter() - started
    )


def define_descent(
    model: Model,
    alpha: float,
    start: str | PrescribedStart | StartFunction,
    *,
    steps: int,
    lr: StepSize,
    d: int | None,
    settings: DynamicsSettings,
) -> Descent:
    """Validate the arguments of a descent and collect them."""
    refuse_spectrum(model, "the dynamics")
    refuse(model, "the dynamics", "latent", "correlation")
    return Descent(
        model=model,
        alpha=validation.number("alpha", alpha, above=0),
        initialize=_initializer(model, start, settings, d),
        d=d,
        lr=step_sizes(lr, validation.integer("steps", steps, at_least=1, at_most=MAX_STEPS)),
        momentum=float(settings.momentum),
        batch_fraction=float(settings.batch_fraction),
        dtype=check_dtype(settings.dtype),
        seed=settings.seed,
    )


def _initializer(
    model: Model,
    start: str | PrescribedStart | StartFunction,
    settings: DynamicsSettings,
    d: int | None,
) -> Callable[[Array], Initialization]:
    """Return a function from the key of a repetition to its initialization."""
    if d is not None:
        function = resolve_start(model, start, settings.scale)
        norm = settings.teacher_norm
        return partial(finite_d_initialization, model, function, d, teacher_norm=norm)
    parts = start_components(model, start, settings.scale)
    warn_if_fixed(free_directions(model, parts, position_modes(model).shape[1]))
    # Called again by each repetition, in the precision of the descent.
    return lambda key: limit_initialization(model, parts)


class _Ensemble(NamedTuple):
    """Repetitions with the same number of sentences, and the samples of every quantity."""

    sentences: int
    repetitions: list[Repetition]
    samples: dict[str, Float[np.ndarray, "repetitions steps"]]

    def mean(self, name: str) -> Steps:
        """Mean of a quantity over the repetitions."""
        return np.asarray(self.samples[name].mean(axis=0))

    def variance(self, name: str) -> Steps:
        """Variance of the mean; NaN for a single repetition."""
        rows = self.samples[name]
        if len(rows) < 2:
            return np.full(rows.shape[1], np.nan)
        return np.asarray(rows.var(axis=0, ddof=1) / len(rows))


class _Estimate(NamedTuple):
    """The largest ensemble, the one of half its size if it is extrapolated, and standard errors."""

    ensemble: _Ensemble
    half: _Ensemble | None
    stderr: dict[str, Steps]

    def extrapolate(self, mean: Callable[[_Ensemble], np.ndarray]) -> np.ndarray:
        """Extrapolate a mean to 1/N = 0; its bias is of order 1/N in the number of sentences."""
        large = mean(self.ensemble)
        return large if self.half is None else 2 * large - mean(self.half)

    def meets(self, rtol: float | None) -> bool:
        """True if standard errors are below rtol times the largest value of each quantity."""
        return rtol is None or all(
            bool(np.all(error <= rtol * np.max(np.abs(self.ensemble.mean(name))) + 1e-12))
            for name, error in self.stderr.items()
        )


def _estimate(
    descent: Descent,
    sentences: int | None,
    settings: DynamicsSettings,
    progress: Progress,
) -> _Estimate:
    """Enlarge ensembles until they meet `rtol`; at finite d their size is `sentences`."""
    one_size = sentences is not None or settings.rtol is None
    counter = ProgressCounter("dynamics", settings.repetitions if one_size else None, progress)

    def ensemble(size: int) -> _Ensemble:
        repetitions = run_repetitions(descent, size, settings.repetitions, counter)
        return _Ensemble(size, repetitions, _samples(descent.model, repetitions))

    log2_size = max(settings.log2_ensemble, (descent.min_sentences - 1).bit_length())
    if one_size:
        single = ensemble(sentences or 2**log2_size)
        return _Estimate(
            single, None, {name: np.sqrt(single.variance(name)) for name in QUANTITIES}
        )
    half, larger = ensemble(2 ** (log2_size - 1)), ensemble(2**log2_size)
    while True:
        stderr = {name: _standard_error(half, larger, name) for name in QUANTITIES}
        estimate = _Estimate(larger, half, stderr)
        is_last = log2_size >= settings.max_log2_ensemble or _divergence(larger) is not None
        if is_last or estimate.meets(settings.rtol):
            return estimate
        log2_size += 1
        half, larger = larger, ensemble(2**log2_size)


def _samples(
    model: Model, repetitions: list[Repetition]
) -> dict[str, Float[np.ndarray, "repetitions steps"]]:
    """Collect the quantities of all repetitions."""
    rho = float(model.rho[0])
    rows = [
        {
            "train_loss": repetition.records.train_loss,
            "test_error": repetition.test_error,
            "theta": rho * np.linalg.norm(repetition.records.theta, axis=(1, 2)),
            "m": np.linalg.norm(repetition.records.m[:, 0], axis=1),
            "q": rho * np.linalg.norm(repetition.records.C, axis=(1, 2)),
        }
        for repetition in repetitions
    ]
    return {name: np.stack([np.asarray(row[name]) for row in rows]) for name in QUANTITIES}


def _standard_error(half: _Ensemble, larger: _Ensemble, name: str) -> Steps:
    """Standard error of an extrapolated mean."""
    with np.errstate(invalid="ignore", over="ignore"):
        variance = 4 * larger.variance(name) + half.variance(name)
        return np.asarray(np.sqrt(variance + (MIN_ERROR * larger.mean(name)) ** 2))


def _divergence(ensemble: _Ensemble) -> int | None:
    """First step at which the loss of a repetition is out of bounds; None if there is none."""
    loss = ensemble.samples["train_loss"]
    outside = ~(loss <= DIVERGED * np.abs(loss[:, :1]) + np.finfo(float).tiny)
    steps = np.flatnonzero(outside.any(axis=0))
    return int(steps[0]) if steps.size else None


def _trusted_until(descent: Descent, estimate: _Estimate, diverged_at: int | None) -> int:
    """Last step before the repetitions disagree.

    At finite d they are different data sets, which need not agree.
    """
    last = len(descent.lr) if diverged_at is None else diverged_at - 1
    if descent.d is not None:
        return last
    rho, position = float(descent.model.rho[0]), float(descent.model.positions[0, 0])
    samples = {name: rows[:, : last + 1] for name, rows in estimate.ensemble.samples.items()}
    sizes = {name: np.abs(rows).max(axis=0) for name, rows in samples.items()}
    # The range of theta and m follows from q: relative to themselves, tiny overlaps are noise.
    sizes["theta"], sizes["m"] = np.sqrt(rho * sizes["q"]), np.sqrt(position / rho * sizes["q"])
    disagree = [
        np.maximum(np.ptp(rows, axis=0), 2 * np.nan_to_num(estimate.stderr[name][: last + 1]))
        > AGREEMENT * np.maximum.accumulate(sizes[name]) + 1e-12
        for name, rows in samples.items()
    ]
    steps = np.flatnonzero(np.any(disagree, axis=0))
    return int(steps[0]) - 1 if steps.size else last


def _trajectory(
    descent: Descent, start: str, settings: DynamicsSettings, estimate: _Estimate, seconds: float
) -> Trajectory:
    """Assemble the result."""
    model, ensemble = descent.model, estimate.ensemble
    rho = np.asarray(model.rho)
    diverged_at = _divergence(ensemble)
    trusted_until = _trusted_until(descent, estimate, diverged_at)
    accurate = descent.d is not None or estimate.meets(settings.rtol)

    def mean_record(ensemble: _Ensemble, name: str) -> np.ndarray:
        return np.mean([getattr(run.records, name) for run in ensemble.repetitions], axis=0)

    with np.errstate(invalid="ignore", over="ignore"):
        theta, m, C, gradient = (
            estimate.extrapolate(partial(mean_record, name=name))
            for name in ("theta", "m", "C", "gradient")
        )
        values = {
            name: estimate.extrapolate(partial(_Ensemble.mean, name=name)) for name in QUANTITIES
        }
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
        stderr=estimate.stderr,
        samples=ensemble.samples,
        trusted_until=trusted_until,
        diverged_at=diverged_at,
        accurate=accurate,
        message=_message(diverged_at, trusted_until, len(descent.lr), accurate, settings.rtol),
        sentences=ensemble.sentences,
        repetitions=len(ensemble.repetitions),
        seed=descent.seed,
        seconds=seconds,
    )


def _message(
    diverged_at: int | None, trusted_until: int, steps: int, accurate: bool, rtol: float | None
) -> str:
    """Verdict on a trajectory in one sentence."""
    if diverged_at is not None:
        return f"diverged at step {diverged_at}: use smaller steps (lr)"
    if trusted_until < 0:
        return "NOT TRUSTED: the repetitions disagree from the first step on"
    if trusted_until < steps:
        return f"NOT TRUSTED after step {trusted_until}: the repetitions disagree from there on"
    if not accurate:
        return f"trusted, but standard errors above rtol = {rtol:g}: use larger ensembles"
    return "trusted: the repetitions agree"
