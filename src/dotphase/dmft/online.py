"""`online`: overlaps and test error of one-pass stochastic gradient descent."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Unpack

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.integrate import solve_ivp

from dotphase.config import validation
from dotphase.config.formatting import Description, format_value
from dotphase.config.settings import replace_fields
from dotphase.dmft import one_pass
from dotphase.dmft.conditioned_descent import Initialization
from dotphase.dmft.initialization import (
    finite_d_initialization,
    limit_initialization,
    warn_if_fixed,
)
from dotphase.dmft.settings import LearningRate, OnlineFields, OnlineSettings
from dotphase.dmft.test_error import field_rule
from dotphase.errors import InvalidInput
from dotphase.finite_d.datasets import count_sentences
from dotphase.finite_d.initialization import (
    PrescribedStart,
    StartFunction,
    position_modes,
    resolve_start,
    start_components,
    start_name,
)
from dotphase.finite_d.overlaps import (
    DIVERGED_RUN,
    MECHANISMS,
    mechanism_of,
    overlap_norms,
    positional_alignment,
)
from dotphase.finite_d.test_error import attention_error, count_fields, field_error
from dotphase.model import Model
from dotphase.model.definition import refuse, refuse_spectrum
from dotphase.numerics.quadrature import Rule
from dotphase.numerics.statistics import error_of_mean
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
#: log2 of the quasi-random points for many fields.
LOG2_POINTS = 13
#: Largest dimension of the weights that test errors are computed from.
MAX_LIFTED = 2**14
#: Printed rows of a path.
PRINTED = 8

Rates = Callable[[np.ndarray], np.ndarray]
Start = str | PrescribedStart | StartFunction
Values = dict[str, Float[np.ndarray, "runs alphas"]]
Errors = dict[str, Float[np.ndarray, " alphas"]]


@dataclass(frozen=True, eq=False, repr=False)
class OnePass(Result):
    """Overlaps and test error along one pass over fresh sentences.

    Attributes
    ----------
    model, start, d : arguments of `online`; d is None in the limit
    settings : update rule and accuracy
    alpha : sentences seen so far, per dimension, after whole steps
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
    samples: Values = field(repr=False)
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
        """Return the share of runs that have learned each mechanism at the last alpha, or diverged.

        Examples
        --------
        >>> path = dp.online(dp.positional_semantic(), alpha=5.0, lr=2.0, start="semantic")
        >>> path.mechanism_shares()["semantic"]
        1.0
        """
        last = [part[:, -1] for part in self.alignments().values()]
        names = [mechanism_of(s, p, self.d or 2**30) for s, p in zip(*last, strict=True)]
        return {name: names.count(name) / len(names) for name in (*MECHANISMS, DIVERGED_RUN)}

    @property
    def description(self) -> Description:
        """Values with errors at a few alphas."""
        dimension = "d -> infinity" if self.d is None else f"d = {self.d}"
        state = "DIVERGED: " if self.diverged else ""
        title = f"{state}one pass to alpha = {self.alpha[-1]:g}, {dimension}, start {self.start}"
        title += f", lr = {self.lr[0]:g} ({self.settings.schedule})"
        table: list[tuple[str, ...]] = [("alpha", *QUANTITIES)]
        for k in np.unique(np.linspace(0, len(self.alpha) - 1, PRINTED).round().astype(int)):
            cells = (
                format_value(getattr(self, name)[k], self.stderr[name][k]) for name in QUANTITIES
            )
            table.append((f"{self.alpha[k]:g}", *cells))
        duration = self.settings.duration(self.d)
        notes = (f"alpha in whole steps of {duration:g}",) if duration else ()
        return Description(title, notes=(*notes, f"{self.seconds:.1f} s"), table=tuple(table))


@in_double_precision
def online(
    model: Model,
    alpha: float | Sequence[float] = 20.0,
    lr: LearningRate = 0.5,
    start: Start = "random",
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
        Sentences per dimension at the end, or at all recorded moments. At finite d and for batches
        these are rounded to whole steps; `OnePass.alpha` has the rounded values.
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
    rates = partial(settings.learning_rates, lr, float(alphas[-1]))
    if d is not None:
        count_sentences(model, float(alphas[-1]), d)
    if duration := settings.duration(d):
        steps = np.unique(np.round(alphas / duration).astype(np.int64))
        validation.integer("number of steps", int(steps[-1]), at_least=1, at_most=MAX_STEPS)
        alphas = steps * duration
    if d is None:
        values, stderr = _limit(model, alphas, rates, start, settings)
    else:
        values, stderr = _finite(model, alphas, rates, start, d, settings)
    means = {name: rows.mean(axis=0) for name, rows in values.items()}
    return OnePass(
        model=model, start=start_name(start), d=d, settings=settings, alpha=alphas,
        lr=rates(alphas), **means, stderr=stderr, samples=values,
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


def _limit(
    model: Model, alphas: np.ndarray, rates: Rates, start: Start, settings: OnlineSettings
) -> tuple[Values, Errors]:
    """Return the path in the limit of large d, and its difference between two quadrature rules."""
    initial = limit_initialization(model, start_components(model, start, settings.scale))
    warn_if_fixed(initial.free)
    results = []
    for rule in _rules(model, settings):
        if settings.batch_fraction:
            steps = _steps(alphas, rates, settings, None)
            path = one_pass.descend(model, initial, *steps, rule)
        else:
            path = _integrate(model, initial, alphas, rates, rule, settings.spherical)
        results.append(_measure(model, initial, path, rule, None))
    values, check = results
    stderr = {name: np.abs(np.asarray(values[name] - check[name])) for name in QUANTITIES}
    return {name: np.asarray(row)[None] for name, row in values.items()}, stderr


def _rules(model: Model, settings: OnlineSettings) -> tuple[Rule, Rule]:
    """Return two quadrature rules for the fields, the first one for the result."""
    children = np.random.SeedSequence([settings.seed, count_fields(model)]).spawn(2)
    rngs = [np.random.default_rng(child) for child in children]
    first = field_rule(model, rngs[0], settings.order, LOG2_POINTS)
    return first, field_rule(model, rngs[1], settings.order - 2, LOG2_POINTS)


def _integrate(
    model: Model,
    initial: Initialization,
    alphas: np.ndarray,
    rates: Rates,
    rule: Rule,
    spherical: bool,
) -> Float[Array, "alphas r base"]:
    """Integrate the differential equations of single-sentence steps."""
    first_lr, evaluations = rates(alphas[:1])[0], itertools.count()

    def speed(alpha: float, state: np.ndarray) -> np.ndarray:
        interrupt.check()
        if next(evaluations) == MAX_EVALUATIONS:
            text = f"needs more than {MAX_EVALUATIONS} evaluations: use a smaller lr or alpha"
            raise RuntimeError(f"one pass at lr = {first_lr:g} {text}")
        lr = jnp.asarray(rates(np.array([alpha]))[0])
        return np.asarray(one_pass.velocity(model, initial, state, lr, rule, spherical))

    def distance(alpha: float, state: np.ndarray) -> float:
        return DIVERGED - float(np.linalg.norm(state))

    distance.terminal = True  # type: ignore[attr-defined]
    state = one_pass.pack(np.asarray(initial.weights))
    # The integrator squares derivatives over its tolerance, and never returns from an overflow.
    if not np.max(np.abs(speed(0.0, state))) < ATOL * np.sqrt(np.finfo(float).max):
        raise InvalidInput("lr", float(first_lr), "makes the derivatives at alpha = 0 overflow")
    span = (0.0, float(alphas[-1]))
    solution = solve_ivp(speed, span, state, t_eval=alphas, events=distance, rtol=RTOL, atol=ATOL)
    if solution.status == -1:
        raise RuntimeError(f"one pass could not be integrated: {solution.message}")
    rows = np.full((len(alphas), len(state)), np.nan)
    rows[: solution.y.shape[1]] = solution.y.T  # an integration that stops early has diverged
    return jax.vmap(lambda row: one_pass.unpack(row, initial))(jnp.asarray(rows))


def _finite(
    model: Model, alphas: np.ndarray, rates: Rates, start: Start, d: int, settings: OnlineSettings
) -> tuple[Values, Errors]:
    """Return the paths of independent runs at finite d, and standard errors of their means."""
    # The basis has the teacher, the positions and the rest of the weights.
    base = model.teacher_rank + position_modes(model).shape[1] + model.student_rank
    validation.integer("d", d, at_least=base)
    initialize = resolve_start(model, start, settings.scale)
    keys = jax.random.split(jax.random.key(settings.seed), (settings.repetitions, 2))
    initial = jax.vmap(lambda key: finite_d_initialization(model, initialize, d, key))(keys[:, 0])
    steps = _steps(alphas, rates, settings, d)
    rule = _rules(model, settings)[0]

    def run(initial: Initialization, key: Array) -> Array:
        sentences = one_pass.Sentences(key, settings.batch(d), jnp.asarray(float(d)))
        return one_pass.descend(model, initial, *steps, sentences)

    paths = jax.vmap(run)(initial, keys[:, 1])
    rows = jax.lax.map(lambda run: _measure(model, run[0], run[1], rule, d), (initial, paths))
    values = {name: np.asarray(rows[name]) for name in QUANTITIES}
    unknown = np.full(len(alphas), np.nan)
    errors = {
        name: error_of_mean(runs) if len(runs) > 1 else unknown for name, runs in values.items()
    }
    return values, errors


def _steps(
    alphas: np.ndarray, rates: Rates, settings: OnlineSettings, d: int | None
) -> tuple[Array, float, Array, bool]:
    """Return the learning rate of every step, and the next arguments of `one_pass.descend`."""
    duration = settings.duration(d)
    recorded = np.round(alphas / duration).astype(np.int64)
    lr = rates(np.arange(recorded[-1]) * duration)
    return jnp.asarray(lr), duration, jnp.asarray(recorded), settings.spherical


@eqx.filter_jit
def _measure(
    model: Model,
    initial: Initialization,
    path: Float[Array, "alphas r base"],
    rule: Rule,
    d: int | None,
) -> dict[str, Float[Array, " alphas"]]:
    """Return test error, in dimension d, and norms of the overlaps of token 1 along a path.

    They are measured on weights that have these coordinates in at most `MAX_LIFTED` dimensions.
    """
    size = path.shape[-1] if d is None else min(d, MAX_LIFTED)

    def lift(rows: Float[Array, "rows base"]) -> Float[Array, "rows size"]:
        return jnp.pad(rows, ((0, 0), (0, size - rows.shape[1])))

    teacher, positions = np.sqrt(size) * lift(initial.teacher).T, lift(initial.positions)
    test_error = field_error if d is None else attention_error

    def measure(coordinates: Float[Array, "r base"]) -> dict[str, Array]:
        weights = np.sqrt(size) * lift(coordinates).T
        norms = overlap_norms(model, weights, teacher, positions)
        error = test_error(model, weights, teacher, positions, rule)
        return {"test_error": error, "theta": norms.theta, "m": norms.m, "q": norms.q}

    return jax.lax.map(measure, path)
