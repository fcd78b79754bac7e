"""`amp`: message passing, compared with training on the same data from the same start."""

from typing import Unpack

from jaxtyping import Array, Float

from dotphase.config.settings import replace_fields
from dotphase.finite_d.initialization import StartFunction
from dotphase.finite_d.loss import Weights
from dotphase.finite_d.preparation import Prepared
from dotphase.gamp.result import MessagePassing
from dotphase.gamp.run import Reference, run_message_passing
from dotphase.gamp.settings import AmpFields, AmpSettings
from dotphase.model import Model
from dotphase.runtime.progress import Progress
from dotphase.training.run import optimize_runs
from dotphase.training.settings import TrainingSettings

#: Settings of the training that fixed points are compared with.
REFERENCE_SETTINGS = TrainingSettings(optimizer="lbfgs", tolerance=1e-9)


def amp(
    model: Model,
    alpha: float,
    d: int,
    *,
    seeds: int = 1,
    start: str | StartFunction = "semantic",
    progress: Progress = None,
    settings: AmpSettings | None = None,
    **changes: Unpack[AmpFields],
) -> MessagePassing:
    """Run generalized approximate message passing on data sets of ``n = round(alpha d)`` sentences.

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
    progress : callable, optional
        Called with a `ProgressEvent` after each run; its `result` is the `AmpRun`.
    settings : AmpSettings, optional
        Damping, iterations and so on.
    **changes
        Fields of `AmpSettings` to replace in `settings`: damping, iterations, tolerance, held_out,
        seed.

    Returns
    -------
    MessagePassing
        All runs, and state evolution. A run need not converge where the proximal map jumps.

    Raises
    ------
    Interrupted
        A `KeyboardInterrupt` with the finished runs.

    Examples
    --------
    >>> passing = dp.amp(dp.positional_semantic(), alpha=2.0, d=40, seeds=2, iterations=5)
    >>> passing.mean["theta"] > passing.mean["m"]
    True
    """
    return run_message_passing(
        model,
        alpha,
        d,
        seeds=seeds,
        start=start,
        settings=replace_fields(settings or AmpSettings(), changes),
        find_reference=_train_reference,
        progress=progress,
    )


def _train_reference(
    model: Model, data: Prepared, weights: Float[Weights, " runs"], keys: Array
) -> Reference:
    """Minimize the loss by L-BFGS on a batch of one, the shape that `train` compiles too."""
    d = weights.shape[1]
    end = optimize_runs(model, data.reduced, REFERENCE_SETTINGS.recipe(d), keys, weights)
    return Reference(end.point.weights[0], float(end.point.value[0]) / d)
