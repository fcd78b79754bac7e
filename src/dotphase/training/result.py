"""What training gives: single runs, and many of them with means and standard errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float

from dotphase.model import Model

#: An alignment this many times what chance gives, 1/sqrt(d), counts as learned.
CHANCE = 4.0

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


def mechanism_of(semantic_alignment: float, positional_alignment: float, d: int) -> str:
    """What a student has learned, from its two alignments; see `Run.mechanism`."""
    aligned = {"semantic": semantic_alignment, "positional": positional_alignment}
    if min(aligned.values()) > 0.5:
        return "mixed"
    best = max(aligned, key=lambda name: aligned[name])
    return best if aligned[best] > CHANCE / d**0.5 else "uninformed"


@dataclass(frozen=True)
class Run:
    """One trained student.

    Attributes
    ----------
    seed : number of the run; the data and the start follow from it
    train_loss : loss at the end, per dimension
    test_error : exact, from the measured overlaps through the Gaussian fields
    test_error_sampled, test_error_sampled_stderr : from held-out sentences
    m, theta, q : ``|Q^T p_1|/sqrt d``, ``|Q^T Sigma_1 Q*|/d``, ``|Q^T Sigma_1 Q|/d``
    linear_test_error : exact test error of the linear layer fitted to the same data
    gradient_norm : norm of the gradient of the training loss
    semantic_alignment : ``|Q^T Q*|/(|Q| |Q*|)``, in [0, 1]
    converged, reason : whether it is below the tolerance, and why the run stopped
    outcome : the reason in one word
    iterations, seconds : steps taken; time, shared equally among the runs of a batch
    weights : the trained Q
    """

    seed: int
    train_loss: float
    test_error: float
    test_error_sampled: float
    test_error_sampled_stderr: float
    m: float
    theta: float
    q: float
    linear_test_error: float
    gradient_norm: float
    semantic_alignment: float
    converged: bool
    reason: str
    outcome: str
    iterations: int
    seconds: float
    weights: Float[np.ndarray, "d r"] = field(repr=False)

    @property
    def diverged(self) -> bool:
        """Whether the optimiser ran away; the numbers are then those before it did."""
        return self.outcome == "diverged"

    @property
    def mechanism(self) -> str:
        """What the student has learned: ``semantic``, ``positional``, ``mixed`` or ``uninformed``.

        Judged by `semantic_alignment` and `positional_alignment`; chance gives each a value
        of about ``1/sqrt d``.
        """
        return mechanism_of(
            self.semantic_alignment, self.positional_alignment, self.weights.shape[0]
        )

    @property
    def positional_alignment(self) -> float:
        """``m/sqrt(m^2 + q)``, in [0, 1]."""
        size = (self.m**2 + self.q) ** 0.5
        return self.m / size if size > 0 else 0.0

    def to_dict(self) -> dict[str, Any]:
        """The run as plain numbers and strings, without its weights."""
        shown = {name: value for name, value in vars(self).items() if name not in UNSHOWN}
        return {**shown, "mechanism": self.mechanism}


@dataclass(frozen=True)
class Training:
    """Runs that differ in their seed only, with means and standard errors.

    Attributes
    ----------
    model, alpha, d, start, optimizer : as given to `train`; `start` is "custom" for a function
    n : sentences in a data set
    runs : every `Run`
    seconds : wall time
    """

    model: Model = field(repr=False)
    alpha: float
    d: int
    n: int
    start: str
    optimizer: str
    runs: tuple[Run, ...]
    seconds: float

    @property
    def converged(self) -> bool:
        """Whether every run converged."""
        return all(run.converged for run in self.runs)

    @property
    def mean(self) -> dict[str, float | None]:
        """Means over the runs that did not diverge; None if there are none."""
        return {name: mean_of(self.runs, name) for name in QUANTITIES}

    @property
    def stderr(self) -> dict[str, float | None]:
        """Standard errors of the means; None for fewer than two runs."""
        return {name: stderr_of(self.runs, name) for name in QUANTITIES}

    def to_dict(self) -> dict[str, Any]:
        """The result as plain numbers, lists and strings, ready for JSON."""
        return {
            "d": self.d,
            "n": self.n,
            "alpha": self.alpha,
            "start": self.start,
            "optimizer": self.optimizer,
            "mean": self.mean,
            "stderr": self.stderr,
            "converged": self.converged,
            "runs": [run.to_dict() for run in self.runs],
            "seconds": self.seconds,
        }

    def __str__(self) -> str:
        head = f"{self.start} start at alpha = {self.alpha:g}, d = {self.d}, {self.optimizer}"
        lines = [f"{head}, {len(self.runs)} runs"]
        mean, stderr = self.mean, self.stderr
        for name in QUANTITIES:
            if mean[name] is None:
                continue
            spread = "" if stderr[name] is None else f" ± {stderr[name]:.2g}"
            lines.append(f"  {name:<20} {mean[name]:.6g}{spread}")
        reasons = [run.reason for run in self.runs]
        for reason in dict.fromkeys(reasons):
            lines.append(f"  {reasons.count(reason)} of {len(reasons)}: {reason}")
        return "\n".join(lines)


def mean_of(runs: Sequence[Run], name: str) -> float | None:
    """Mean of a quantity over the runs that did not diverge; None if there are none."""
    values = _values(runs, name)
    return float(values.mean()) if values.size else None


def stderr_of(runs: Sequence[Run], name: str) -> float | None:
    """Standard error of `mean_of`; None for fewer than two runs."""
    values = _values(runs, name)
    return float(values.std(ddof=1) / np.sqrt(values.size)) if values.size > 1 else None


def _values(runs: Sequence[Run], name: str) -> np.ndarray:
    return np.asarray([getattr(run, name) for run in runs if not run.diverged])
