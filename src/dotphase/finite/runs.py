"""Students on data sets: single runs, and many of them with means and standard errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from dotphase._numerics import interrupt
from dotphase.errors import Interrupted
from dotphase.finite.overlaps import mechanism_of
from dotphase.model import Model

#: Attributes of runs that are too long to print.
UNSHOWN = ("weights", "history")

#: Quantities averaged over runs.
QUANTITIES = (
    "train_loss",
    "test_error",
    "test_error_sampled",
    "m",
    "theta",
    "q",
    "linear_test_error",
    "gradient_norm",
)


def bytes_kept(model: Model, d: int) -> int:
    """Memory that a finished run keeps: its weights and some numbers."""
    return 8 * d * model.student_rank + 2000


@contextmanager
def keeping(runs: Sequence[Any], result: Callable[[], Any]) -> Iterator[None]:
    """Raise `Interrupted` with the result of the runs so far if the work inside is interrupted."""
    try:
        yield
    except KeyboardInterrupt:
        if not runs:
            raise
        interrupt.keep()
        raise Interrupted(result()) from None


@dataclass(frozen=True)
class Run:
    """One student on one data set.

    Attributes
    ----------
    seed : number of the run; the data and the start follow from it
    train_loss : loss at the end, per dimension
    test_error : exact, from the measured overlaps through the Gaussian fields
    test_error_sampled, test_error_sampled_stderr : from held-out sentences
    m, theta, q : ``|Q^T p_1|/sqrt d``, ``|Q^T Sigma_1 Q*|/d``, ``|Q^T Sigma_1 Q|/d``
    linear_test_error : exact test error of the linear layer fitted to the same data; None where
        the model is not plain
    gradient_norm : norm of the gradient of the training loss
    semantic_alignment : ``|Q^T Q*|/(|Q| |Q*|)``, in [0, 1]
    positional_alignment : ``m/sqrt(m^2 + q)``, in [0, 1]
    converged, reason : whether it is below the tolerance, and why the run stopped
    outcome : the reason in one word
    iterations, seconds : steps taken; time, shared equally among the runs of a batch
    weights : Q at the end

    Examples
    --------
    >>> training = dp.train(dp.positional_semantic(), alpha=2.0, d=40, seeds=2, start="semantic")
    >>> training.runs[0].mechanism
    'semantic'
    """

    seed: int
    train_loss: float
    test_error: float
    test_error_sampled: float
    test_error_sampled_stderr: float
    m: float
    theta: float
    q: float
    linear_test_error: float | None = field(default=None, kw_only=True)
    gradient_norm: float
    semantic_alignment: float
    positional_alignment: float
    converged: bool
    reason: str
    outcome: str
    iterations: int
    seconds: float
    weights: Float[np.ndarray, "d r"] = field(repr=False)

    @property
    def diverged(self) -> bool:
        """Whether the iteration ran away, the numbers being those before it did, or met numbers
        that are not finite."""
        return self.outcome in ("diverged", "not_finite")

    @property
    def mechanism(self) -> str:
        """What the student has learned: ``semantic``, ``positional``, ``mixed`` or ``uninformed``.

        Judged by `semantic_alignment` and `positional_alignment`; chance gives each a value
        of about ``1/sqrt d``.
        """
        return mechanism_of(
            self.semantic_alignment, self.positional_alignment, self.weights.shape[0]
        )

    def to_dict(self) -> dict[str, Any]:
        """The run as plain numbers and strings, without its weights."""
        shown = {name: value for name, value in vars(self).items() if name not in UNSHOWN}
        return {**shown, "mechanism": self.mechanism}


@dataclass(frozen=True, kw_only=True)
class Runs:
    """Runs that differ in their seed only, with means and standard errors; engines add to it.

    Attributes
    ----------
    model, alpha, d, start : as given; `start` is "custom" for a function
    n : sentences in a data set
    runs : every `Run`
    seconds : wall time
    """

    #: What is averaged over the runs.
    quantities: ClassVar[tuple[str, ...]] = QUANTITIES

    model: Model = field(repr=False)
    alpha: float
    d: int
    n: int
    start: str
    runs: tuple[Run, ...]
    seconds: float

    @property
    def converged(self) -> bool:
        """Whether every run converged."""
        return all(run.converged for run in self.runs)

    @property
    def mean(self) -> dict[str, float | None]:
        """Means over the runs that did not diverge; None if there are none."""
        found = self._values()
        return {n: float(row.mean()) if row.size else None for n, row in found.items()}

    @property
    def stderr(self) -> dict[str, float | None]:
        """Standard errors of the means; None for fewer than two runs."""
        return {
            name: float(row.std(ddof=1) / np.sqrt(row.size)) if row.size > 1 else None
            for name, row in self._values().items()
        }

    def _values(self) -> dict[str, np.ndarray]:
        """What is averaged: the numbers of the runs that did not diverge and have one."""
        runs = [run for run in self.runs if not run.diverged]
        rows = {name: [getattr(run, name) for run in runs] for name in self.quantities}
        return {name: np.asarray([v for v in row if v is not None]) for name, row in rows.items()}

    def to_dict(self) -> dict[str, Any]:
        """The result as plain numbers, lists and strings, ready for JSON."""
        names = ("d", "n", "alpha", "start", "mean", "stderr", "converged", "runs", "seconds")
        shown = {name: getattr(self, name) for name in names}
        return shown | {"runs": [run.to_dict() for run in self.runs]}

    def described(self, how: str, more: Sequence[str] = ()) -> str:
        """The result in lines: how it was found, means with errors, `more`, why runs stopped."""
        head = f"{self.start} start at alpha = {self.alpha:g}, d = {self.d}, {how}"
        lines = [f"{head}, {len(self.runs)} runs"]
        mean, stderr = self.mean, self.stderr
        for name, value in mean.items():
            if value is not None:
                spread = "" if stderr[name] is None else f" ± {stderr[name]:.2g}"
                lines.append(f"  {name:<20} {value:.6g}{spread}")
        lines += more
        reasons = [run.reason for run in self.runs]
        for reason in dict.fromkeys(reasons):
            lines.append(f"  {reasons.count(reason)} of {len(reasons)}: {reason}")
        return "\n".join(lines)
