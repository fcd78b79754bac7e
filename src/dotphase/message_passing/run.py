"""Message passing over many seeds, compared with training and with state evolution."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dotphase._numerics import validate
from dotphase._numerics.outcome import Outcome
from dotphase._numerics.precision import in_double_precision
from dotphase.errors import Interrupted
from dotphase.finite import memory
from dotphase.finite.data import count_sentences, position_vectors
from dotphase.finite.starts import Start, resolve
from dotphase.finite.test_error import quadrature
from dotphase.message_passing.gamp import first_state, is_sane, iterate
from dotphase.message_passing.prediction import Start as StartOverlaps
from dotphase.message_passing.prediction import average_start, predict
from dotphase.model.definition import Model, refuse_spectrum
from dotphase.training.batch import (
    BLOCK,
    HELD_OUT,
    Prepared,
    measure_runs,
    optimise,
    prepare_runs,
    run_keys,
)
from dotphase.training.result import QUANTITIES, Run, mean_of, stderr_of
from dotphase.training.run import choose_batch

#: Share of the old values in a damped step, by start; the positional point oscillates.
DAMPING, POSITIONAL_DAMPING = 0.5, 0.8
#: Gradient norm over sqrt(d) at which a run has converged.
TOLERANCE = 1e-8
#: Iterations without a smaller gradient after which a run is given up.
PATIENCE = 60
#: ``V_l/sigma_l^2`` at the start, of the order it has at the fixed points.
FIRST_V = 40.0
#: Iterations that state evolution is followed for.
FOLLOWED = 80
#: Steps and tolerance of the L-BFGS run that the fixed point is compared with.
TRAINED_STEPS, TRAINED_TOLERANCE = 2000, 1e-9
#: Overlaps followed from iteration to iteration.
FOLLOWED_OVERLAPS = ("q", "m", "theta")


@dataclass(frozen=True)
class AmpRun(Run):
    """One run of message passing; what it shares with `Run` means the same.

    Attributes
    ----------
    overlap_with_trained : cosine with the weights L-BFGS finds on the same data from the
        same start
    trained_loss : training loss of those weights, per dimension
    two_minima : share of sentences whose proximal problem was seen to have two minima
    history : q, m and theta at every iteration
    """

    overlap_with_trained: float
    trained_loss: float
    two_minima: float
    history: tuple[dict[str, float], ...] = field(repr=False)


@dataclass(frozen=True)
class MessagePassing:
    """Runs of message passing, and state evolution beside them.

    Attributes
    ----------
    model, alpha, d, start, damping : as given to `amp`, or chosen by it
    n : sentences in a data set
    runs : every run, with what a `Run` has and how it compares with training
    iterations : for every iteration the measured overlaps (mean and standard error over the
        runs; a run that has stopped stays where it is) and the predicted ones
    seconds : wall time
    """

    model: Model = field(repr=False)
    alpha: float
    d: int
    n: int
    start: str
    damping: float
    runs: tuple[AmpRun, ...]
    iterations: tuple[dict[str, Any], ...] = field(repr=False)
    seconds: float

    @property
    def converged(self) -> bool:
        """Whether every run converged."""
        return all(run.converged for run in self.runs)

    @property
    def mean(self) -> dict[str, float | None]:
        """Means over the runs that did not diverge; None if there are none."""
        return {name: mean_of(self.runs, name) for name in (*QUANTITIES, "overlap_with_trained")}

    @property
    def stderr(self) -> dict[str, float | None]:
        """Standard errors of the means; None for fewer than two runs."""
        return {name: stderr_of(self.runs, name) for name in (*QUANTITIES, "overlap_with_trained")}

    def to_dict(self) -> dict[str, Any]:
        """The result as plain numbers, lists and strings, ready for JSON."""
        return {
            "d": self.d,
            "n": self.n,
            "alpha": self.alpha,
            "start": self.start,
            "damping": self.damping,
            "mean": self.mean,
            "stderr": self.stderr,
            "gradient_norm": self.mean["gradient_norm"],
            "overlap_with_trained": self.mean["overlap_with_trained"],
            "converged": self.converged,
            "runs": [run.to_dict() for run in self.runs],
            "iterations": list(self.iterations),
            "seconds": self.seconds,
        }

    def __str__(self) -> str:
        head = f"message passing, {self.start} start at alpha = {self.alpha:g}, d = {self.d}"
        lines = [f"{head}, damping {self.damping:g}, {len(self.runs)} runs"]
        mean, stderr = self.mean, self.stderr
        for name, value in mean.items():
            if value is not None:
                spread = "" if stderr[name] is None else f" ± {stderr[name]:.2g}"
                lines.append(f"  {name:<20} {value:.6g}{spread}")
        lines.append("  iteration: measured (state evolution) q, m, theta")
        shown = [k for k in range(len(self.iterations)) if k < 6 or k % 10 == 0]
        for k in shown:
            row = self.iterations[k]
            if row["predicted"] is None:
                break
            pairs = [
                f"{row['measured'][name]:.4f} ({row['predicted'][name]:.4f})"
                for name in FOLLOWED_OVERLAPS
            ]
            lines.append(f"  {k:>9}: " + "  ".join(pairs))
        reasons = [run.reason for run in self.runs]
        for reason in dict.fromkeys(reasons):
            lines.append(f"  {reasons.count(reason)} of {len(reasons)}: {reason}")
        return "\n".join(lines)


@in_double_precision
def amp(
    model: Model,
    alpha: float,
    d: int,
    *,
    seeds: int = 1,
    start: str | Start = "semantic",
    damping: float | None = None,
    iterations: int = 400,
    tolerance: float = TOLERANCE,
    held_out: int = HELD_OUT,
    seed: int = 0,
    on_run: Callable[[AmpRun], None] | None = None,
) -> MessagePassing:
    """Generalised approximate message passing on data sets of ``n = round(alpha d)`` sentences.

    Parameters
    ----------
    model : Model
        Teacher, student and data.
    alpha, d : float, int
        Sentences per dimension, and dimension of a token.
    seeds : int
        Number of runs; run k has the data and the start of run k of `train`.
    start : {"semantic", "positional", "mixed", "random"} or callable
        As in `train`.
    damping : float in [0, 1), optional
        Share of the old values in a step; .5, and .8 for the positional start, if not given.
    iterations : int
        Most iterations.
    tolerance : float
        Norm of the gradient of the training loss over sqrt(d) at which a run has converged.
    held_out : int
        Fresh sentences for `test_error_sampled`.
    seed : int
        Seed of everything random.
    on_run : callable, optional
        Called with each finished run.

    Returns
    -------
    MessagePassing
        Message passing need not converge where the proximal map jumps; each run says so.

    Raises
    ------
    Interrupted
        A `KeyboardInterrupt` that carries the runs finished so far.
    """
    began = time.perf_counter()
    refuse_spectrum(model, "message passing")
    n = count_sentences(model, alpha, d)
    seeds = validate.whole("seeds", seeds, at_least=1)
    limit = validate.whole("iterations", iterations, at_least=1)
    tolerance = validate.number("tolerance", tolerance, above=0)
    blocks = -(-validate.whole("held_out", held_out, at_least=2) // BLOCK)
    if damping is None:
        damping = POSITIONAL_DAMPING if start == "positional" else DAMPING
    damping = validate.number("damping", damping, at_least=0, at_most=0.99)
    chosen = resolve(model, start)
    positions = jnp.asarray(position_vectors(model, d))
    choose_batch(model, d, n, np.dtype("float64"), 1, 1)  # refuses what does not fit
    root = jax.random.key(validate.whole("seed", seed, at_least=0))
    V = FIRST_V * np.asarray(model.rho)[:, None, None] * np.eye(model.student_rank)

    runs: list[AmpRun] = []
    starts: list[StartOverlaps] = []

    def result() -> MessagePassing:
        # State evolution from the overlaps that the starts have on average.
        length = max(len(run.history) for run in runs)
        average = average_start(model, starts)
        predicted = predict(model, n / d, average, min(length - 1, FOLLOWED), damping, seed)
        return MessagePassing(
            model=model,
            alpha=float(alpha),
            d=d,
            n=n,
            start=start if isinstance(start, str) else "custom",
            damping=damping,
            runs=tuple(runs),
            iterations=tuple(_compare(runs, predicted, length)),
            seconds=time.perf_counter() - began,
        )

    try:
        for number in range(seeds):
            with memory.explained(1):
                keys = run_keys(root, jnp.asarray([number]))
                ready = prepare_runs(model, chosen, keys, n, positions)
                run = _run(model, ready, keys, number, V, damping, limit, tolerance, blocks)
            begun = StartOverlaps.of(
                ready.teacher_weights[0], ready.positions[0], ready.weights[0], V
            )
            starts.append(begun)
            runs.append(run)
            if on_run is not None:
                on_run(run)
    except KeyboardInterrupt:
        if not runs:
            raise
        raise Interrupted(result()) from None
    return result()


def _compare(
    runs: list[AmpRun], predicted: list[dict[str, float]], length: int
) -> list[dict[str, Any]]:
    """Measured overlaps of every iteration beside the predicted ones."""
    rows = []
    for k in range(length):
        now = [run.history[min(k, len(run.history) - 1)] for run in runs]
        measured = {name: np.asarray([each[name] for each in now]) for name in FOLLOWED_OVERLAPS}
        several = len(runs) > 1
        rows.append(
            {
                "iteration": k,
                "measured": {name: float(values.mean()) for name, values in measured.items()},
                "stderr": {
                    name: float(values.std(ddof=1) / np.sqrt(values.size)) if several else None
                    for name, values in measured.items()
                },
                "predicted": predicted[k] if k < len(predicted) else None,
            }
        )
    return rows


def _run(
    model: Model,
    ready: Prepared,
    keys: Any,
    number: int,
    V: np.ndarray,
    damping: float,
    limit: int,
    tolerance: float,
    blocks: int,
) -> AmpRun:
    """Iterate on one data set (in a batch of one), then compare with training."""
    began = time.perf_counter()
    one = jax.tree.map(lambda leaf: leaf[0], ready)
    d = one.weights.shape[0]
    state = first_state(model, one.reduced, one.weights, jnp.asarray(V))
    history: list[dict[str, float]] = []
    slopes: list[float] = []
    recent: deque[tuple[float, Any]] = deque(maxlen=PATIENCE)
    outcome, two_minima = Outcome.STEPS, 0.0
    for k in range(limit + 1):
        history.append(_overlaps(model, one, state.weights))
        new, info = iterate(model, one.reduced, state, jnp.asarray(damping), jnp.asarray(k))
        slopes.append(float(info.gradient_norm) / np.sqrt(d))
        two_minima = float(info.rivals)
        recent.append((slopes[-1], state.weights))
        if slopes[-1] <= tolerance:
            outcome = Outcome.CONVERGED
        elif not bool(is_sane(new)):
            outcome = Outcome.DIVERGED
        elif _stands_still(slopes):
            outcome = Outcome.UNSETTLED
        if outcome != Outcome.STEPS:
            break
        state = new
    # The start may have a small gradient too, near a saddle: only late iterations count.
    best, best_weights = min(recent, key=lambda pair: pair[0])
    weights = best_weights[None]
    measured = measure_runs(model, ready, weights, quadrature(model), keys, blocks)
    trained = optimise(
        model, ready, "lbfgs", TRAINED_STEPS, 1.0, TRAINED_TOLERANCE * np.sqrt(d), 1, keys
    )
    return AmpRun(
        seed=number,
        converged=outcome.success,
        reason=_reason(outcome, best, two_minima),
        outcome=outcome.word,
        iterations=len(history) - 1,
        seconds=time.perf_counter() - began,
        weights=np.asarray(best_weights),
        overlap_with_trained=_cosine(best_weights, trained.point.weights[0]),
        trained_loss=float(trained.point.value[0]) / d,
        two_minima=two_minima,
        history=tuple(history),
        **{name: float(value[0]) for name, value in measured._asdict().items()},
    )


def _stands_still(slopes: list[float]) -> bool:
    """Whether the last iterations have brought no smaller gradient than those before them."""
    if len(slopes) < 2 * PATIENCE:
        return False
    return min(slopes[-PATIENCE:]) > 0.9 * min(slopes[-2 * PATIENCE : -PATIENCE])


def _reason(outcome: Outcome, slope: float, two_minima: float) -> str:
    """The message of an outcome, and what is known of a run that failed."""
    if outcome.success:
        return outcome.message
    reason = f"{outcome.message}; gradient/sqrt(d) = {slope:.1e}"
    if two_minima > 0:
        reason += f"; the proximal map of {100 * two_minima:.1f}% of the sentences has two minima"
        reason += " and jumps between them"
    return reason


def _overlaps(model: Model, one: Prepared, weights: Any) -> dict[str, float]:
    q = np.asarray(weights)
    d = q.shape[0]
    rho = float(model.rho[0])
    return {
        "q": rho * float(np.linalg.norm(q.T @ q)) / d,
        "m": float(np.linalg.norm(q.T @ np.asarray(one.positions)[0])) / np.sqrt(d),
        "theta": rho * float(np.linalg.norm(q.T @ np.asarray(one.teacher_weights))) / d,
    }


def _cosine(a: Any, b: Any) -> float:
    """``|tr(A^T B)|/(|A| |B|)``; the sign of all of Q does not matter to a tied student."""
    a, b = np.asarray(a), np.asarray(b)
    size = np.linalg.norm(a) * np.linalg.norm(b)
    return float(abs(np.sum(a * b)) / size) if size > 0 else 0.0
