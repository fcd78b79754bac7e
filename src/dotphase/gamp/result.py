"""The result of message passing: `MessagePassing`."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from dotphase.config.formatting import Description
from dotphase.finite_d.runs import QUANTITIES, Run, Runs
from dotphase.storage.labels import add_labels

if TYPE_CHECKING:
    import xarray as xr

#: Overlaps recorded at every iteration.
RECORDED_OVERLAPS = ("q", "m", "theta")
#: Numbers of each overlap at every iteration.
PARTS = ("measured", "predicted", "stderr")


@dataclass(frozen=True, eq=False, repr=False)
class AmpRun(Run):
    """Run of message passing; inherits the attributes of `Run`.

    Attributes
    ----------
    overlap_with_trained : cosine with the weights that L-BFGS finds on the same data from the
        same start; None without training
    trained_loss : training loss of those weights, per dimension
    two_minima : share of sentences whose proximal problem has two known minima
    history : q, m and theta at every iteration
    """

    overlap_with_trained: float | None
    trained_loss: float | None
    two_minima: float
    history: tuple[dict[str, float], ...] = field(repr=False)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MessagePassing(Runs):
    """Runs of message passing, and the prediction of state evolution.

    Attributes
    ----------
    model, alpha, d, start : arguments of `amp`
    damping : weight of the old values in a step
    n : sentences in a data set
    runs : every `AmpRun`
    iterations : for every iteration the measured overlaps (mean and standard error over the
        runs; a finished run keeps its last values) and the predicted ones
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
        """Share of the response that jumps carry, at the last prediction; NaN without one.

        The error of the predicted overlaps is of this order.
        """
        rows = [row["predicted"] for row in self.iterations if row["predicted"]]
        return next((row["jump_weight"] for row in rows[::-1] if "jump_weight" in row), math.nan)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain numbers, lists and strings, ready for JSON."""
        mean = self.mean
        return {
            "damping": self.damping,
            "jump_weight": self.jump_weight,
            "gradient_norm": mean["gradient_norm"],
            "overlap_with_trained": mean["overlap_with_trained"],
            **super().to_dict(),
            "iterations": list(self.iterations),
        }

    def dataset(self) -> xr.Dataset:
        """Return the runs over seed, and the overlaps over iteration, as a labeled dataset."""
        return super().dataset().merge(self._iterations()).assign_attrs(damping=self.damping)

    def _iterations(self) -> xr.Dataset:
        """Measured and predicted overlaps of every iteration; NaN where there is no number."""
        import xarray as xr

        values = {
            f"{name}_{part}": [
                math.nan if (row[part] or {}).get(name) is None else row[part][name]
                for row in self.iterations
            ]
            for name in RECORDED_OVERLAPS
            for part in PARTS
        }
        dataset = xr.Dataset(
            {name: ("iteration", column) for name, column in values.items()},
            coords={"iteration": [row["iteration"] for row in self.iterations]},
        )
        return add_labels(dataset)

    @property
    def description(self) -> Description:
        """Means with errors, and the overlaps by iteration."""
        table = [("iteration", *(f"{name}{text}" for name in RECORDED_OVERLAPS
                                 for text in ("", " predicted")))]  # fmt: skip
        for row in self.iterations:
            k = row["iteration"]
            if row["predicted"] is None:
                break
            if k < 6 or k % 10 == 0:
                cells = (f"{row[part][name]:.4f}" for name in RECORDED_OVERLAPS
                         for part in ("measured", "predicted"))  # fmt: skip
                table.append((str(k), *cells))
        note = (
            f"jumps carry {100 * self.jump_weight:.2g}% of the response: the order of the error "
            "of state evolution before the fixed point, which is exact"
        )
        method = f"message passing with damping {self.damping:g}"
        return replace(self.describe_runs(method, [note]), table=tuple(table))
