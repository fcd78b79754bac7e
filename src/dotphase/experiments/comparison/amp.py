"""Message passing beside training: the same data, the same start, the same minimum."""

from __future__ import annotations

from typing import Unpack

from jaxtyping import Array, Float

from dotphase.config.settings import replace_fields
from dotphase.finite_d.initialization import StartFunction
from dotphase.finite_d.loss import Weights
from dotphase.finite_d.preparation import Prepared
from dotphase.gamp.result import MessagePassing
from dotphase.gamp.run import Rival, pass_messages
from dotphase.gamp.settings import MessagePassingFields, MessagePassingSettings
from dotphase.model import Model
from dotphase.runtime.progress import ProgressCallback
from dotphase.training.run import optimize_runs
from dotphase.training.settings import TrainingSettings

#: How the students are trained that fixed points are compared with.
TRAINED = TrainingSettings(optimizer="lbfgs", tolerance=1e-9)


def amp(
    model: Model,
    alpha: float,
    d: int,
    *,
    seeds: int = 1,
    start: str | StartFunction = "semantic",
    settings: MessagePassingSettings | None = None,
    progress: ProgressCallback | None = None,
    **changes: Unpack[MessagePassingFields],
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
    settings : MessagePassingSettings, optional
        Damping, iterations and so on.
    progress : callable, optional
        Receives a `ProgressEvent` with each finished run.
    **changes
        Fields of `MessagePassingSettings` that are to differ from `settings`: damping,
        iterations, tolerance, held_out, seed.

    Returns
    -------
    MessagePassing
        Message passing need not converge where the proximal map jumps; each run says so.

    Raises
    ------
    Interrupted
        A `KeyboardInterrupt` that carries the runs finished so far.

    Examples
    --------
    >>> passing = dp.amp(dp.positional_semantic(), alpha=2.0, d=40, seeds=2, iterations=5)
    >>> passing.mean["theta"] > passing.mean["m"]
    True
    """
    return pass_messages(
        model,
        alpha,
        d,
        seeds=seeds,
        start=start,
        settings=replace_fields(settings or MessagePassingSettings(), changes),
        rival=_trained,
        progress=progress,
    )


def _trained(model: Model, data: Prepared, weights: Float[Weights, " runs"], keys: Array) -> Rival:
    """The minimum that L-BFGS finds, as a batch of one: `train` compiles the same."""
    d = weights.shape[1]
    end = optimize_runs(model, data.reduced, TRAINED.recipe(d), keys, weights)
    return Rival(end.point.weights[0], float(end.point.value[0]) / d)
