"""What message passing gives."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

from dotphase.config.formatting import Description
from dotphase.finite_d.runs import QUANTITIES, Run, Runs

#: Overlaps followed from iteration to iteration.
FOLLOWED_OVERLAPS = ("q", "m", "theta")


@dataclass(frozen=True, eq=False)
class AmpRun(Run):
    """One run of message passing; what it shares with `Run` means the same.

    Attributes
    ----------
    overlap_with_trained : cosine with the weights L-BFGS finds on the same data from the
        same start; None where nothing was trained
    trained_loss : training loss of those weights, per dimension
    two_minima : share of sentences whose proximal problem was seen to have two minima
    history : q, m and theta at every iteration
    """

    overlap_with_trained: float | None
    trained_loss: float | None
    two_minima: float
    history: tuple[dict[str, float], ...] = field(repr=False)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MessagePassing(Runs):
    """Runs of message passing, and state evolution beside them.

    Attributes
    ----------
    model, alpha, d, start, damping : as given to `amp`, or chosen by it
    n : sentences in a data set
    runs : every run, with what a `Run` has and how it compares with training
    iterations : for every iteration the measured overlaps (mean and standard error over the
        runs; a run that has stopped stays where it is) and the predicted ones
    seconds : wall time

    Examples
    --------
    >>> passing = dp.amp(dp.positional_semantic(), alpha=2.0, d=40, seeds=2, iterations=5)
    >>> passing.start
    'semantic'
    """

    quantities: ClassVar[tuple[str, ...]] = (*QUANTITIES, "overlap_with_trained")

    damping: float
    runs: tuple[AmpRun, ...]
    iterations: tuple[dict[str, Any], ...] = field(repr=False)

    @property
    def jump_weight(self) -> float:
        """Share of the response that jumps carry, as predicted last: the order of the error of the
        predicted overlaps. NaN where nothing was predicted."""
        rows = [row["predicted"] for row in self.iterations if row["predicted"]]
        return next((row["jump_weight"] for row in rows[::-1] if "jump_weight" in row), math.nan)

    def to_dict(self) -> dict[str, Any]:
        """The result as plain numbers, lists and strings, ready for JSON."""
        mean = self.mean
        return {
            "damping": self.damping,
            "jump_weight": self.jump_weight,
            "gradient_norm": mean["gradient_norm"],
            "overlap_with_trained": mean["overlap_with_trained"],
            **super().to_dict(),
            "iterations": list(self.iterations),
        }

    @property
    def description(self) -> Description:
        """Means with errors, and the overlaps by iteration."""
        lines = ["iteration: measured (state evolution) q, m, theta"]
        for row in self.iterations:
            k = row["iteration"]
            if row["predicted"] is None:
                break
            if k < 6 or k % 10 == 0:
                pairs = [
                    f"{row['measured'][name]:.4f} ({row['predicted'][name]:.4f})"
                    for name in FOLLOWED_OVERLAPS
                ]
                lines.append(f"{k:>9}: " + "  ".join(pairs))
        lines.append(
            f"jumps carry {100 * self.jump_weight:.2g}% of the response: the order of the error "
            "of state evolution on the way; fixed points are exact"
        )
        return self.describe_runs(f"message passing with damping {self.damping:g}", lines)
