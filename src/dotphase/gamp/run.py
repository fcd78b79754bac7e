"""Message passing over many seeds, compared with state evolution."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dotphase.config import validation
from dotphase.finite_d.batches import check_run_fits, padded_size
from dotphase.finite_d.datasets import count_sentences, position_vectors
from dotphase.finite_d.initialization import StartFunction, resolve_start, start_name
from dotphase.finite_d.loss import Weights
from dotphase.finite_d.measurement import count_blocks, measure_runs
from dotphase.finite_d.nonfinite import diagnose_run
from dotphase.finite_d.overlaps import overlap_norms
from dotphase.finite_d.preparation import Prepared, prepare_runs
from dotphase.finite_d.prng_keys import keys_at
from dotphase.finite_d.runs import keep_finished, result_bytes
from dotphase.finite_d.test_error import check_dims, quadrature
from dotphase.gamp.iteration import first_state, in_blocks, is_sane, iterate
from dotphase.gamp.result import FOLLOWED_OVERLAPS, AmpRun, MessagePassing
from dotphase.gamp.settings import MessagePassingSettings
from dotphase.gamp.state_evolution import StartOverlaps, average_start, predict
from dotphase.model import memory_check
from dotphase.model.definition import Model, refuse, refuse_spectrum
from dotphase.numerics.outcome import Outcome
from dotphase.numerics.statistics import error_if_known
from dotphase.runtime import interrupt, memory_limit
from dotphase.runtime.precision import in_double_precision
from dotphase.runtime.progress import ProgressCallback, ProgressEvent, report_nothing

#: Iterations without a smaller gradient after which a run is given up.
PATIENCE = 60
#: ``V_l/sigma_l^2`` at the start, of the order it has at the fixed points.
FIRST_V = 40.0
#: Iterations that state evolution is followed for.
FOLLOWED = 80

_norms = eqx.filter_jit(overlap_norms)


@eqx.filter_jit
def _alone(batch: Any) -> Any:
    """The only run of a batch."""
    return jax.tree.map(lambda leaf: leaf[0], batch)


class Rival(NamedTuple):
    """Weights that something else found on the same data from the same start, and their loss."""

    weights: Weights
    train_loss: float


#: ``(model, data, first weights, key of the run) -> Rival``, all as a batch of one run.
FindRival = Callable[[Model, Prepared, Weights, Array], Rival]


@in_double_precision
def pass_messages(
    model: Model,
    alpha: float,
    d: int,
    *,
    seeds: int,
    start: str | StartFunction,
    settings: MessagePassingSettings,
    rival: FindRival | None = None,
    progress: ProgressCallback | None = None,
) -> MessagePassing:
    """`dotphase.amp`, compared with the weights that a rival finds."""
    began = time.perf_counter()
    refuse_spectrum(model, "message passing")
    refuse(model, "message passing", "latent", "correlation")
    n = count_sentences(model, alpha, d)
    seeds = validation.integer("seeds", seeds, at_least=1)
    damping, begin = settings.damping_from(start), resolve_start(model, start)
    # Refuses what does not fit.
    check_run_fits(model, n, d)
    memory_check.check_points(model, padded_size(n))
    check_dims(model)
    memory_limit.check_storage("seeds", seeds, result_bytes(model, d))
    positions = jnp.asarray(position_vectors(model, d))
    root = jax.random.key(settings.seed)
    V = FIRST_V * np.asarray(model.rho)[:, None, None] * np.eye(model.student_rank)

    report = progress or report_nothing
    runs: list[AmpRun] = []
    starts: list[StartOverlaps] = []

    def result(*, follow: bool = False) -> MessagePassing:
        length = max(len(run.history) for run in runs)
        predicted: list[dict[str, float]] = []
        if follow:  # state evolution from the overlaps that the starts have on average
            average, followed = average_start(model, starts), min(length - 1, FOLLOWED)
            predicted = predict(model, n / d, average, followed, damping, settings.seed)
        return MessagePassing(
            model=model,
            alpha=float(alpha),
            d=d,
            n=n,
            start=start_name(start),
            damping=damping,
            runs=tuple(runs),
            iterations=tuple(_compare(runs, predicted, length)),
            seconds=time.perf_counter() - began,
        )

    with keep_finished(runs, result), memory_limit.explain_out_of_memory(1):
        for number in range(seeds):
            keys = keys_at(root, jnp.asarray([[number]]))
            data, first = prepare_runs(model, begin, keys, n, positions)
            run = _run(model, data, first, V, damping, settings, number, keys, rival)
            teacher, directions, weights = _alone((data.teacher_weights, data.positions, first))
            starts.append(StartOverlaps.of(teacher, directions, weights, V))
            runs.append(run)
            report(ProgressEvent("message passing", len(runs), seeds, run))
    return result(follow=True)


def _compare(
    runs: list[AmpRun], predicted: list[dict[str, float]], length: int
) -> list[dict[str, Any]]:
    """Measured overlaps of every iteration beside the predicted ones."""
    rows = []
    for k in range(length):
        now = [run.history[min(k, len(run.history) - 1)] for run in runs]
        found = {name: np.asarray([each[name] for each in now]) for name in FOLLOWED_OVERLAPS}
        rows.append({
            "iteration": k,
            "measured": {name: float(values.mean()) for name, values in found.items()},
            "stderr": {name: error_if_known(values) for name, values in found.items()},
            "predicted": predicted[k] if k < len(predicted) else None,
        })  # fmt: skip
    return rows


def _run(
    model: Model,
    batch: Prepared,
    starts: Float[Weights, " runs"],
    V: Float[np.ndarray, "tokens r r"],
    damping: float,
    settings: MessagePassingSettings,
    number: int,
    keys: Array,
    rival: FindRival | None,
) -> AmpRun:
    """Iterate on one data set, given as a batch of one; then measure and compare."""
    began = time.perf_counter()
    data, first = _alone((batch, starts))
    d = first.shape[0]
    state, sentences = first_state(data.reduced, first, jnp.asarray(V)), in_blocks(data.reduced)
    history: list[dict[str, float]] = []
    slopes: list[float] = []
    recent: deque[tuple[float, Weights]] = deque(maxlen=PATIENCE)
    outcome, two_minima = Outcome.STEPS, 0.0
    for k in range(settings.iterations + 1):
        interrupt.check()
        norms = _norms(model, state.weights, data.teacher_weights, data.positions)
        history.append({name: float(getattr(norms, name)) for name in FOLLOWED_OVERLAPS})
        asked = (data.reduced, sentences, state, jnp.asarray(damping), jnp.asarray(k))
        new, info = iterate(model, *asked)
        slopes.append(float(info.gradient_norm) / np.sqrt(d))
        two_minima = float(info.rivals)
        recent.append((slopes[-1], state.weights))
        if slopes[-1] <= settings.tolerance:
            outcome = Outcome.CONVERGED
        elif not bool(is_sane(new)):
            outcome = Outcome.DIVERGED
        elif _stands_still(slopes):
            outcome = Outcome.UNSETTLED
        if outcome != Outcome.STEPS:
            break
        state = new
    # The start may have a small gradient too, near a saddle: only late iterations count.
    best, weights = min(recent, key=lambda pair: pair[0])
    blocks = count_blocks(settings.held_out)
    found = measure_runs(model, batch, weights[None], quadrature(model), keys, blocks)
    values = {name: float(each[0]) for name, each in jax.tree.map(np.asarray, found).items()}
    more = _more(outcome, best, two_minima)
    if not all(np.isfinite(value) for value in values.values()):
        diagnosis = diagnose_run(model, data, weights, quadrature(model))
        outcome, more = Outcome.NOT_FINITE, f": {diagnosis}"
    other = None if rival is None else rival(model, batch, starts, keys)
    return AmpRun(
        index=number,
        converged=outcome.success,
        reason=outcome.message + more,
        outcome=outcome.word,
        iterations=len(history) - 1,
        seconds=time.perf_counter() - began,
        weights=np.asarray(weights),
        overlap_with_trained=None if other is None else _cosine(weights, other.weights),
        trained_loss=None if other is None else float(other.train_loss),
        two_minima=two_minima,
        history=tuple(history),
        **values,
    )


def _stands_still(slopes: list[float]) -> bool:
    """Whether the last iterations have brought no smaller gradient than those before them."""
    if len(slopes) < 2 * PATIENCE:
        return False
    return min(slopes[-PATIENCE:]) > 0.9 * min(slopes[-2 * PATIENCE : -PATIENCE])


def _more(outcome: Outcome, slope: float, two_minima: float) -> str:
    """What is known of a run that failed, to be added to the message of its outcome."""
    if outcome.success:
        return ""
    more = "; use more damping" if outcome is Outcome.DIVERGED else ""
    more += f"; gradient/sqrt(d) = {slope:.1e}"
    if two_minima > 0:
        more += f", because the proximal map of {100 * two_minima:.1f}% of the sentences has two"
        more += " minima and jumps between them from one iteration to the next"
    return more


def _cosine(a: Any, b: Any) -> float:
    """``|tr(A^T B)|/(|A| |B|)``; the sign of all of Q does not matter to a tied student."""
    a, b = np.asarray(a), np.asarray(b)
    size = np.linalg.norm(a) * np.linalg.norm(b)
    return float(abs(np.sum(a * b)) / size) if size > 0 else 0.0
