"""Message passing on several data sets, and its state evolution."""

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
from dotphase.finite_d.measurement import count_blocks, diagnose_run, measure_runs
from dotphase.finite_d.overlaps import overlap_norms
from dotphase.finite_d.preparation import Prepared, prepare_runs
from dotphase.finite_d.prng_keys import keys_at
from dotphase.finite_d.runs import keep_finished, result_bytes
from dotphase.finite_d.test_error import check_dims, quadrature
from dotphase.gamp.iteration import initial_state, is_valid, iterate, sentence_blocks
from dotphase.gamp.result import RECORDED_OVERLAPS, AmpRun, MessagePassing
from dotphase.gamp.settings import AmpSettings
from dotphase.gamp.state_evolution import mean_gram, overlap_gram, predict
from dotphase.model import memory_check
from dotphase.model.definition import Model, refuse, refuse_spectrum
from dotphase.numerics.outcome import Outcome
from dotphase.numerics.statistics import error_if_known
from dotphase.runtime import interrupt, memory_limit
from dotphase.runtime.precision import in_double_precision
from dotphase.runtime.progress import Progress, ProgressCounter

#: Iterations without a smaller gradient after which a run stops.
PATIENCE = 60
#: Initial ``V_l/sigma_l^2``, of the order of its value at the fixed points.
INITIAL_V = 40.0
#: Largest number of iterations that state evolution predicts.
MAX_PREDICTED = 80

_overlap_norms = eqx.filter_jit(overlap_norms)


@eqx.filter_jit
def _only_run(batch: Any) -> Any:
    """Return the single run of a batch."""
    return jax.tree.map(lambda leaf: leaf[0], batch)


class Reference(NamedTuple):
    """Weights that another method finds on the same data from the same start, and their loss."""

    weights: Weights
    train_loss: float


#: ``(model, data, first weights, key of the run) -> Reference``, all as a batch of one run.
FindReference = Callable[[Model, Prepared, Weights, Array], Reference]


class _Iterations(NamedTuple):
    """The iterations of one run: the weights with the smallest gradient, and how it ended."""

    outcome: Outcome
    weights: Weights
    gradient: float
    two_minima: float
    history: tuple[dict[str, float], ...]


@in_double_precision
def run_message_passing(
    model: Model,
    alpha: float,
    d: int,
    *,
    seeds: int,
    start: str | StartFunction,
    settings: AmpSettings,
    find_reference: FindReference | None = None,
    progress: Progress = None,
) -> MessagePassing:
    """Run message passing as in `dotphase.amp`; compare with reference weights if there are any."""
    started = time.perf_counter()
    seeds = validation.integer("seeds", seeds, at_least=1)
    n = _check_size(model, alpha, d, seeds)
    damping, initialize = settings.damping_from(start), resolve_start(model, start)
    positions = jnp.asarray(position_vectors(model, d))
    root = jax.random.key(settings.seed)
    V = INITIAL_V * np.asarray(model.rho)[:, None, None] * np.eye(model.student_rank)
    counter = ProgressCounter("message passing", seeds, progress)
    runs: list[AmpRun] = []
    grams: list[Float[np.ndarray, "k k"]] = []

    def result(*, with_prediction: bool = False) -> MessagePassing:
        iterations = max(len(run.history) for run in runs)
        predicted: list[dict[str, float]] = []
        if with_prediction:
            gram, count = mean_gram(model, grams), min(iterations - 1, MAX_PREDICTED)
            predicted = predict(model, n / d, gram, V, count, damping, settings.seed)
        return MessagePassing(
            model=model,
            alpha=float(alpha),
            d=d,
            n=n,
            start=start_name(start),
            damping=damping,
            runs=tuple(runs),
            iterations=tuple(_iteration_table(runs, predicted, iterations)),
            seconds=time.perf_counter() - started,
        )

    with keep_finished(runs, result), memory_limit.explain_out_of_memory(1):
        for index in range(seeds):
            keys = keys_at(root, jnp.asarray([[index]]))
            data, first = prepare_runs(model, initialize, keys, n, positions, settings.teacher_norm)
            run = _run(model, data, first, V, damping, settings, index, keys, find_reference)
            teacher, directions, weights = _only_run((data.teacher_weights, data.positions, first))
            grams.append(overlap_gram(teacher, directions, weights))
            runs.append(run)
            counter.tick(run)
    return result(with_prediction=True)


def _check_size(model: Model, alpha: float, d: int, seeds: int) -> int:
    """Refuse models and sizes that message passing cannot handle; return the sentences."""
    refuse_spectrum(model, "message passing")
    refuse(model, "message passing", "latent", "correlation")
    n = count_sentences(model, alpha, d)
    check_run_fits(model, n, d)
    memory_check.check_points(model, padded_size(n))
    check_dims(model)
    memory_limit.check_storage("seeds", seeds, result_bytes(model, d))
    return n


def _iteration_table(
    runs: list[AmpRun], predicted: list[dict[str, float]], iterations: int
) -> list[dict[str, Any]]:
    """Tabulate measured and predicted overlaps of every iteration."""
    rows = []
    for k in range(iterations):
        overlaps = [run.history[min(k, len(run.history) - 1)] for run in runs]
        samples = {
            name: np.asarray([norms[name] for norms in overlaps]) for name in RECORDED_OVERLAPS
        }
        rows.append({
            "iteration": k,
            "measured": {name: float(values.mean()) for name, values in samples.items()},
            "stderr": {name: error_if_known(values) for name, values in samples.items()},
            "predicted": predicted[k] if k < len(predicted) else None,
        })  # fmt: skip
    return rows


def _run(
    model: Model,
    batch: Prepared,
    first: Float[Weights, " runs"],
    V: Float[np.ndarray, "tokens r r"],
    damping: float,
    settings: AmpSettings,
    index: int,
    keys: Array,
    find_reference: FindReference | None,
) -> AmpRun:
    """Run on one data set, given as a batch of one; then measure and compare."""
    started = time.perf_counter()
    data, initial_weights = _only_run((batch, first))
    end = _iterate_until_converged(model, data, initial_weights, V, damping, settings)
    outcome, detail = end.outcome, _detail(end)
    blocks = count_blocks(settings.held_out)
    measured = measure_runs(model, batch, end.weights[None], quadrature(model), keys, blocks)
    values = {name: float(v[0]) for name, v in jax.tree.map(np.asarray, measured).items()}
    if not all(np.isfinite(value) for value in values.values()):
        diagnosis = diagnose_run(model, data, end.weights, quadrature(model))
        outcome, detail = Outcome.NOT_FINITE, f": {diagnosis}"
    reference = None if find_reference is None else find_reference(model, batch, first, keys)
    return AmpRun(
        index=index,
        converged=outcome.success,
        reason=outcome.message + detail,
        outcome=outcome.word,
        iterations=len(end.history) - 1,
        seconds=time.perf_counter() - started,
        weights=np.asarray(end.weights),
        overlap_with_trained=None if reference is None else _cosine(end.weights, reference.weights),
        trained_loss=None if reference is None else float(reference.train_loss),
        two_minima=end.two_minima,
        history=end.history,
        **values,  # type: ignore[arg-type]
    )


def _iterate_until_converged(
    model: Model,
    data: Prepared,
    initial_weights: Weights,
    V: Float[np.ndarray, "tokens r r"],
    damping: float,
    settings: AmpSettings,
) -> _Iterations:
    """Iterate until the gradient is below the tolerance, or the run fails."""
    state = initial_state(data.reduced, initial_weights, jnp.asarray(V))
    sentences, step = sentence_blocks(data.reduced), jnp.asarray(damping)
    history: list[dict[str, float]] = []
    gradients: list[float] = []
    recent: deque[tuple[float, Weights]] = deque(maxlen=PATIENCE)
    outcome, two_minima = Outcome.STEPS, 0.0
    for k in range(settings.iterations + 1):
        interrupt.check()
        norms = _overlap_norms(model, state.weights, data.teacher_weights, data.positions)
        history.append({name: float(getattr(norms, name)) for name in RECORDED_OVERLAPS})
        new, diagnostics = iterate(model, data.reduced, sentences, state, step, jnp.asarray(k))
        gradients.append(float(diagnostics.gradient_norm) / np.sqrt(len(initial_weights)))
        two_minima = float(diagnostics.two_minima)
        recent.append((gradients[-1], state.weights))
        if gradients[-1] <= settings.tolerance:
            outcome = Outcome.CONVERGED
        elif not bool(is_valid(new)):
            outcome = Outcome.DIVERGED
        elif _is_stuck(gradients):
            outcome = Outcome.UNSETTLED
        if outcome != Outcome.STEPS:
            break
        state = new
    # The initial gradient may be small too, near a saddle: only late iterations count.
    gradient, weights = min(recent, key=lambda pair: pair[0])
    return _Iterations(outcome, weights, gradient, two_minima, tuple(history))


def _is_stuck(gradients: list[float]) -> bool:
    """Return True if the last iterations have no smaller gradient than those before them."""
    if len(gradients) < 2 * PATIENCE:
        return False
    return min(gradients[-PATIENCE:]) > 0.9 * min(gradients[-2 * PATIENCE : -PATIENCE])


def _detail(end: _Iterations) -> str:
    """Details of a failed run, to append to the message of its outcome."""
    if end.outcome.success:
        return ""
    detail = "; use more damping" if end.outcome is Outcome.DIVERGED else ""
    detail += f"; gradient/sqrt(d) = {end.gradient:.1e}"
    if end.two_minima > 0:
        detail += f", because the proximal map of {100 * end.two_minima:.1f}% of the sentences has"
        detail += " two minima and jumps between them from one iteration to the next"
    return detail


def _cosine(a: Any, b: Any) -> float:
    """``|tr(A^T B)|/(|A| |B|)``; the sign of all of Q does not matter to a tied student."""
    a, b = np.asarray(a), np.asarray(b)
    size = np.linalg.norm(a) * np.linalg.norm(b)
    return float(abs(np.sum(a * b)) / size) if size > 0 else 0.0
