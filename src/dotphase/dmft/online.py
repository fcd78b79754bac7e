"""`online`: overlaps and test error of one-pass stochastic gradient descent."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.integrate import solve_ivp

from dotphase.config import validation
from dotphase.config.formatting import Description, format_value
from dotphase.config.serialization import fields_except
from dotphase.config.settings import replace_fields
from dotphase.dmft import one_pass
from dotphase.dmft.conditioned_descent import Initialization, Records
from dotphase.dmft.initialization import finite_d_initialization, limit_initialization
from dotphase.dmft.one_pass import StepRule
from dotphase.dmft.online_settings import SCHEDULES, OnlineFields, OnlineSettings
from dotphase.dmft.test_error import test_errors
from dotphase.errors import InvalidInput
from dotphase.finite_d.datasets import count_sentences
from dotphase.finite_d.initialization import (
    PrescribedStart,
    StartFunction,
    resolve_start,
    start_components,
    start_name,
)
from dotphase.finite_d.overlaps import MECHANISMS, mechanism_of, positional_alignment
from dotphase.finite_d.test_error import attention_error, count_fields
from dotphase.model import Model
from dotphase.model.definition import refuse, refuse_spectrum
from dotphase.numerics.quadrature import Rule, gauss_hermite, sobol_rule
from dotphase.runtime import interrupt
from dotphase.runtime.precision import in_double_precision
from dotphase.storage.results import Result

#: Quantities with a value and a standard error at every alpha.
QUANTITIES = ("test_error", "theta", "m", "q")
#: Number of intervals of the default grid of alpha.
INTERVALS = 100
#: Largest number of steps.
MAX_STEPS = 2**28
#: Relative and absolute tolerance of the integration in alpha.
RTOL, ATOL = 1e-6, 1e-10
#: Largest number of evaluations of the derivative; large learning rates make the equations stiff.
MAX_EVALUATIONS = 100_000
#: Size of the overlaps at which a descent has diverged.
DIVERGED = 1e6
#: Fields for which a tensor-product rule is used, and log2 of the points for more fields.
MAX_TENSOR_DIMS, LOG2_POINTS = 4, 13
#: Largest dimension of the weights that test errors are computed from.
MAX_LIFTED = 2**14
#: Printed rows of a path.
PRINTED = 8

LearningRate = float | Callable[[float], float]
Values = dict[str, Float[np.ndarray, "runs alphas"]]


@dataclass(frozen=True, eq=False, repr=False)
class OnePass(Result):
    """Overlaps and test error along one pass over fresh sentences.

    Attributes
    ----------
    model, start, d : arguments of `online`; d is None in the limit
    settings : update rule and accuracy
    alpha : sentences seen so far, per dimension
    lr : learning rate at each alpha
    test_error : test error at each alpha
    theta, m, q : norms of the overlaps of token 1
    stderr : errors of these; at finite d standard errors over the runs, in the limit the difference
        between two quadrature rules
    samples : values of each run
    seconds : wall time

    Examples
    --------
    >>> path = dp.online(dp.positional_semantic(), alpha=5.0, lr=2.0, start="semantic")
    >>> path.alpha.shape, path.theta.shape
    ((101,), (101,))
    """

    dimensions: ClassVar = {
        **dict.fromkeys(("alpha", "lr", *QUANTITIES), ("alpha",)),
        **{f"{name}_stderr": ("alpha",) for name in QUANTITIES},
        **{f"{name}_samples": ("repetition", "alpha") for name in QUANTITIES},
    }

    model: Model
    start: str
    d: int | None
    settings: OnlineSettings
    alpha: Float[np.ndarray, " alphas"]
    lr: Float[np.ndarray, " alphas"]
    test_error: Float[np.ndarray, " alphas"]
    theta: Float[np.ndarray, " alphas"]
    m: Float[np.ndarray, " alphas"]
    q: Float[np.ndarray, " alphas"]
    stderr: dict[str, Float[np.ndarray, " alphas"]]
    samples: Values
    seconds: float

    @property
    def diverged(self) -> bool:
        """True if a value is not finite."""
        return not all(np.all(np.isfinite(getattr(self, name))) for name in QUANTITIES)

    def alignments(self) -> dict[str, Float[np.ndarray, "runs alphas"]]:
        """Return the cosine with the teacher and the share of the positions, for each run.

        ``semantic = theta/(sigma_1 sqrt q)`` and ``positional = m/sqrt(m^2 + q)``.

        Examples
        --------
        >>> path = dp.online(dp.positional_semantic(), alpha=5.0, lr=2.0, start="semantic")
        >>> round(float(path.alignments()["semantic"][0, 0]), 6)
        1.0
        """
        theta, m, q = (self.samples[name] for name in ("theta", "m", "q"))
        tiny = np.finfo(float).tiny
        semantic = theta / np.sqrt(float(self.model.rho[0]) * q + tiny)
        return {"semantic": semantic, "positional": positional_alignment(m, q)}

    def exit_alpha(self, level: float = 0.5) -> Float[np.ndarray, " runs"]:
        """Return the first alpha at which either alignment of a run exceeds a level; NaN if none.

        Examples
        --------
        >>> path = dp.online(dp.positional_semantic(), alpha=5.0, lr=2.0, start="semantic")
        >>> path.exit_alpha()
        array([0.])
        """
        above = np.max(list(self.alignments().values()), axis=0) > level
        return np.where(above.any(axis=1), self.alpha[above.argmax(axis=1)], np.nan)

    def mechanism_shares(self) -> dict[str, float]:
        """Return the share of runs that have learned each mechanism at the last alpha.

        Examples
        --------
        >>> path = dp.online(dp.positional_semantic(), alpha=5.0, lr=2.0, start="semantic")
        >>> path.mechanism_shares()["semantic"]
        1.0
        """
        last = [part[:, -1] for part in self.alignments().values()]
        names = [mechanism_of(s, p, self.d or 2**30) for s, p in zip(*last, strict=True)]
        return {name: names.count(name) / len(names) for name in MECHANISMS}

    def to_dict(self) -> dict[str, Any]:
        """Return the path as plain numbers and lists, ready for JSON."""
        return {**fields_except(self, "model", "settings", "samples"), **vars(self.settings)}

    @property
    def description(self) -> Description:
        """Values with errors at a few alphas."""
        dimension = "d -> infinity" if self.d is None else f"d = {self.d}"
        title = f"one pass to alpha = {self.alpha[-1]:g}, {dimension}, start {self.start}"
        title += f", lr = {self.lr[0]:g} ({self.settings.schedule})"
        rows = [("alpha", "".join(f"{name:>24}" for name in QUANTITIES))]
        for k in np.unique(np.linspace(0, len(self.alpha) - 1, PRINTED).round().astype(int)):
            cells = (
                format_value(getattr(self, name)[k], self.stderr[name][k]) for name in QUANTITIES
            )
            rows.append((f"{self.alpha[k]:g}", "".join(f"{cell:>24}" for cell in cells)))
        return Description(title, tuple(rows), (f"{self.seconds:.1f} s",))


@in_double_precision
def online(
    model: Model,
    alpha: float | Sequence[float] = 20.0,
    lr: LearningRate = 0.5,
    start: str | PrescribedStart | StartFunction = "random",
    *,
    d: int | None = None,
    settings: OnlineSettings | None = None,
    **changes: Unpack[OnlineFields],
) -> OnePass:
    """Compute one-pass stochastic gradient descent: every step uses a new sentence.

    A step is ``Q <- Q - lr (gradient of |y - f|^2/(2d) + (ridge/d) Q)``; after n steps, alpha is
    n/d. In the limit of large d the overlaps obey differential equations in alpha: gradient flow on
    the population loss in time lr x alpha, and a term ``lr^2 sum_l sigma_l^2 E|g_l|^2`` in the
    derivative of ``|Q|^2/d``, with the forces ``g_l = d ell/dX_l``.

    Parameters
    ----------
    model : Model
        Teacher, student and data, with white tokens.
    alpha : float or increasing sequence
        Sentences per dimension at the end, or at all recorded moments.
    lr : float or callable
        Learning rate, or a function of alpha.
    start : {"semantic", "positional", "mixed", "random"}, `start_from` or callable
        Initial weights. Random weights have overlaps of order 1/sqrt d with teacher and positions:
        in the limit they are zero and stay zero, at finite d they leave zero after an alpha of
        order log d. Functions need d.
    d : int, optional
        Dimension of all random draws. The result is then the mean of independent runs, each with
        new sentences. The runs cost the same for every d and neglect terms of order 1/d.
    settings : `dotphase.analysis.OnlineSettings`, optional
        Update rule and accuracy.
    **changes
        Fields of `OnlineSettings` to replace in `settings`: schedule, batch_fraction, spherical,
        scale, repetitions, order, seed.

    Returns
    -------
    OnePass
        Test error and overlaps at every alpha, with errors.

    Examples
    --------
    >>> path = dp.online(dp.positional_semantic(), alpha=5.0, lr=2.0, start="semantic")
    >>> bool(path.test_error[-1] < path.test_error[0])
    True
    """
    started = time.perf_counter()
    settings = replace_fields(settings or OnlineSettings(), changes)
    refuse_spectrum(model, "one pass")
    refuse(model, "one pass", "latent", "correlation")
    alphas = _alphas(alpha)
    rate = _LearningRate(lr, settings.schedule, float(alphas[-1]))
    if d is None:
        alphas, values, stderr = _limit(model, alphas, rate, start, settings)
    else:
        alphas, values, stderr = _finite(model, alphas, rate, start, d, settings)
    means = {name: rows.mean(axis=0) for name, rows in values.items()}
    return OnePass(
        model=model, start=start_name(start), d=d, settings=settings, alpha=alphas,
        lr=np.array([rate(alpha) for alpha in alphas]), **means, stderr=stderr, samples=values,
        seconds=time.perf_counter() - started,
    )  # fmt: skip


def _alphas(alpha: Any) -> Float[np.ndarray, " alphas"]:
    """Return the recorded values of alpha, beginning with zero."""
    if np.ndim(alpha) == 0:
        return np.linspace(0, validation.number("alpha", alpha, above=0), INTERVALS + 1)
    grid = validation.grid("alpha", alpha)
    if grid[0] < 0 or grid[-1] <= 0:
        raise InvalidInput("alpha", alpha, "must be >= 0, the last one > 0")
    return grid if grid[0] == 0 else np.concatenate([[0.0], grid])


class _LearningRate:
    """The learning rate as a function of alpha."""

    def __init__(self, lr: LearningRate, schedule: str, end: float) -> None:
        self.lr, self.end, self.factor = lr, end, SCHEDULES[schedule]
        if not callable(lr):
            validation.number("lr", lr, above=0)

    def __call__(self, alpha: float) -> float:
        base = self.lr(alpha) if callable(self.lr) else self.lr
        value = validation.number("lr", base, at_least=0) * self.factor(alpha, self.end)
        return float(max(value, 0.0))


def _limit(
    model: Model,
    alphas: np.ndarray,
    rate: _LearningRate,
    start: str | PrescribedStart | StartFunction,
    settings: OnlineSettings,
) -> tuple[np.ndarray, Values, dict[str, np.ndarray]]:
    """Return the path in the limit of large d with two quadrature rules."""
    if not isinstance(start, str | PrescribedStart):
        rule = "must be a name or overlaps unless d is given"
        raise InvalidInput("start", start_name(start), rule)
    initial = limit_initialization(model, start_components(model, start, settings.scale))
    best, other = _rules(model, settings)
    if settings.batch_fraction:
        alphas, steps = _recorded_steps(alphas, settings.batch_fraction)
        paths = [_batch_path(model, initial, rate, steps, rule, settings) for rule in (best, other)]
    else:
        paths = [_integrate(model, initial, alphas, rate, rule, settings) for rule in (best, other)]
    values, check = (
        _measure(model, initial, path, rule)
        for path, rule in zip(paths, (best, other), strict=True)
    )
    stderr = {name: np.abs(values[name] - check[name]) for name in QUANTITIES}
    return alphas, {name: values[name][None] for name in QUANTITIES}, stderr


def _rules(model: Model, settings: OnlineSettings) -> tuple[Rule, Rule]:
    """Return two quadrature rules for the fields, the first one for the result."""
    dims = count_fields(model)
    if dims <= MAX_TENSOR_DIMS and model.loss is None:
        return gauss_hermite(settings.order, dims), gauss_hermite(settings.order - 2, dims)
    seeds = [settings.seed, settings.seed + 1]
    first, second = (
        sobol_rule(LOG2_POINTS, dims, np.random.default_rng([seed, dims])) for seed in seeds
    )
    return first, second


def _integrate(
    model: Model,
    initial: Initialization,
    alphas: np.ndarray,
    rate: _LearningRate,
    rule: Rule,
    settings: OnlineSettings,
) -> Float[Array, "alphas r base"]:
    """Integrate the differential equations of single-sentence steps."""

    evaluations = itertools.count()

    def speed(alpha: float, state: np.ndarray) -> np.ndarray:
        interrupt.check()
        if next(evaluations) == MAX_EVALUATIONS:
            text = f"needs more than {MAX_EVALUATIONS} evaluations: use a smaller lr or alpha"
            raise RuntimeError(f"one pass at lr = {rate(0.0):g} {text}")
        lr = jnp.asarray(rate(alpha))
        return np.asarray(one_pass.velocity(model, initial, state, lr, rule, settings.spherical))

    def distance(alpha: float, state: np.ndarray) -> float:
        return DIVERGED - float(np.linalg.norm(state))

    distance.terminal = True  # type: ignore[attr-defined]
    state = one_pass.pack(np.asarray(initial.weights))
    # The integrator squares derivatives over its tolerance, and never returns from an overflow.
    if not np.max(np.abs(speed(0.0, state))) < ATOL * np.sqrt(np.finfo(float).max):
        raise InvalidInput("lr", rate(0.0), "makes the derivatives at alpha = 0 overflow")
    span = (0.0, float(alphas[-1]))
    solution = solve_ivp(speed, span, state, t_eval=alphas, events=distance, rtol=RTOL, atol=ATOL)
    if solution.status == -1:
        raise RuntimeError(f"one pass could not be integrated: {solution.message}")
    path = solution.y.T
    # An integration that stops early has diverged.
    missing = np.full((len(alphas) - len(path), len(state)), np.nan)
    rows = jnp.asarray(np.concatenate([path, missing]))
    return jax.vmap(lambda row: one_pass.unpack(row, initial))(rows)


def _recorded_steps(alphas: np.ndarray, duration: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the alphas that are multiples of a step, and the numbers of steps."""
    steps = np.round(alphas / duration).astype(np.int64)
    validation.integer("number of steps", int(steps[-1]), at_least=1, at_most=MAX_STEPS)
    steps = np.unique(steps)
    return steps * duration, steps


def _step_rule(initial: Initialization, duration: float, settings: OnlineSettings) -> StepRule:
    """Return the rule of a step, with a learning rate that is still to be set."""
    norms = jnp.linalg.norm(initial.weights, axis=1) if settings.spherical else None
    return StepRule(1.0, duration, norms=norms)


def _step_sizes(rate: _LearningRate, steps: np.ndarray, duration: float) -> Float[Array, " steps"]:
    """Return the learning rate of every step."""
    count = int(steps[-1])
    if not callable(rate.lr) and rate.factor is SCHEDULES["constant"]:
        return jnp.full(count, rate(0.0))
    return jnp.asarray([rate(step * duration) for step in range(count)])


def _batch_path(
    model: Model,
    initial: Initialization,
    rate: _LearningRate,
    steps: np.ndarray,
    rule: Rule,
    settings: OnlineSettings,
) -> Float[Array, "alphas r base"]:
    """Return the path of steps on batches of a number of sentences that grows with d."""
    duration = settings.batch_fraction
    step_rule = _step_rule(initial, duration, settings)
    lr = _step_sizes(rate, steps, duration)
    return one_pass.limit_steps(model, initial, lr, rule, step_rule, jnp.asarray(steps))


def _finite(
    model: Model,
    alphas: np.ndarray,
    rate: _LearningRate,
    start: str | PrescribedStart | StartFunction,
    d: int,
    settings: OnlineSettings,
) -> tuple[np.ndarray, Values, dict[str, np.ndarray]]:
    """Return the paths of independent runs at finite d, and standard errors of their means."""
    count_sentences(model, float(alphas[-1]), d)
    initialize = resolve_start(model, start, settings.scale)
    batch = max(1, round(settings.batch_fraction * d))
    alphas, steps = _recorded_steps(alphas, batch / d)
    keys = jax.random.split(jax.random.key(settings.seed), (settings.repetitions, 2))
    initial = jax.vmap(lambda key: finite_d_initialization(model, initialize, d, key))(keys[:, 0])
    lr = _step_sizes(rate, steps, batch / d)

    @eqx.filter_jit
    def run(initial: Initialization, key: Array) -> Array:
        step_rule = _step_rule(initial, batch / d, settings)
        return one_pass.chain(
            model, initial, lr, batch, jnp.asarray(float(d)), step_rule, jnp.asarray(steps), key
        )

    paths = jax.vmap(run)(initial, keys[:, 1])
    rule = _rules(model, settings)[0]
    rows = [
        _measure(model, jax.tree.map(lambda part, k=k: part[k], initial), path, rule, d)
        for k, path in enumerate(paths)
    ]
    values = {name: np.stack([row[name] for row in rows]) for name in QUANTITIES}
    count = settings.repetitions
    stderr = {
        name: runs.std(axis=0, ddof=1) / np.sqrt(count)
        if count > 1
        else np.full(len(steps), np.nan)
        for name, runs in values.items()
    }
    return alphas, values, stderr


def _measure(
    model: Model,
    initial: Initialization,
    path: Float[Array, "alphas r base"],
    rule: Rule,
    d: int | None = None,
) -> dict[str, Float[np.ndarray, " alphas"]]:
    """Return test error, in dimension d, and norms of the overlaps of token 1 along a path."""
    theta = path @ initial.teacher.T
    m = jnp.moveaxis(path @ initial.positions.T, 2, 1)
    gram = path @ path.swapaxes(1, 2)
    if d is None:
        zeros = jnp.zeros(len(path))
        records = Records(zeros, zeros, theta, m, gram)
        errors = test_errors(model, initial.teacher @ initial.teacher.T, records, rule)
    else:
        errors = _errors_at_d(model, initial, path, rule, min(d, MAX_LIFTED))
    rho = float(model.rho[0])
    values = {
        "test_error": errors,
        "theta": rho * jnp.linalg.norm(theta, axis=(1, 2)),
        "m": jnp.linalg.norm(m[:, 0], axis=1),
        "q": rho * jnp.linalg.norm(gram, axis=(1, 2)),
    }
    return {name: np.asarray(row) for name, row in values.items()}


@eqx.filter_jit
def _errors_at_d(
    model: Model, initial: Initialization, path: Float[Array, "alphas r base"], rule: Rule, d: int
) -> Float[Array, " alphas"]:
    """Return the test errors of weights in dimension d with these coordinates."""
    pad = ((0, d - path.shape[-1]), (0, 0))
    positions = jnp.pad(initial.positions.T, pad).T
    teacher = np.sqrt(d) * jnp.pad(initial.teacher.T, pad)

    def error(weights: Float[Array, "r base"]) -> Array:
        return attention_error(
            model, np.sqrt(d) * jnp.pad(weights.T, pad), teacher, positions, rule
        )

    return jax.lax.map(error, path)
