"""What training gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dotphase.config.formatting import Description
from dotphase.finite_d.runs import Runs

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True, kw_only=True)
class Training(Runs):
    """Trained students that differ in their seed only, with means and standard errors.

    Attributes
    ----------
    model, alpha, d, start, optimizer : as given to `train`; `start` is "custom" for a function
    n : sentences in a data set
    runs : every `Run`
    seconds : wall time
    theory : numbers of the theory at this d, by mechanism, where they were asked for
    budget : whether the number of steps is meant, as with optimizers that take steps of a fixed
        size, rather than a limit on the way to the tolerance
    path : loss, test error and overlaps of every run at every step, where they were recorded

    Examples
    --------
    >>> training = dp.train(dp.positional_semantic(), alpha=2.0, d=40, seeds=2, start="semantic")
    >>> training.n
    80
    """

    optimizer: str
    budget: bool = False
    path: xr.Dataset | None = field(default=None, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """The result as plain numbers, lists and strings, ready for JSON."""
        return {"optimizer": self.optimizer, **super().to_dict()}

    @property
    def finished(self) -> bool:
        """Whether every run converged, or took the steps that it was meant to take."""
        return all(run.converged or (self.budget and run.outcome == "steps") for run in self.runs)

    @property
    def description(self) -> Description:
        """What was learned, means with errors, why runs stopped."""
        return self.described(self.optimizer)

    def dataset(self) -> xr.Dataset:
        """What was measured of every run over seed, with the path where it was recorded."""
        found = super().dataset().assign_attrs(optimizer=self.optimizer)
        if self.path is None:
            return found
        return found.merge(self.path.rename({name: f"path_{name}" for name in self.path.data_vars}))
