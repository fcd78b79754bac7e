"""Result of training."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dotphase.config.formatting import Description
from dotphase.finite_d.runs import Runs
from dotphase.storage.provenance import attribute
from dotphase.training.settings import TrainingSettings

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Training(Runs):
    """Trained students that differ only in the index of their run, with means and standard errors.

    Attributes
    ----------
    model, alpha, d, start, settings : arguments of `train`; `start` is "custom" for a function
    n : sentences in a data set
    runs : every `Run`
    seconds : wall time
    theory : predictions at this d by mechanism, added by `dotphase.analysis.with_theory`
    path : loss, test error and overlaps of every run at every step, if they were recorded

    Examples
    --------
    >>> training = dp.train(dp.positional_semantic(), alpha=2.0, d=40, seeds=2, start="semantic")
    >>> training.n
    80
    """

    settings: TrainingSettings = field(default_factory=TrainingSettings)
    path: xr.Dataset | None = field(default=None)

    @property
    def optimizer(self) -> str:
        """Name of the optimizer."""
        return self.settings.optimizer

    def to_dict(self) -> dict[str, Any]:
        """Return the result as numbers, lists and strings, ready for JSON."""
        return {"optimizer": self.optimizer, **super().to_dict()}

    @property
    def successful(self) -> bool:
        """True if every run converged or, with fixed steps, took all of them."""
        fixed = self.settings.has_fixed_steps
        return all(run.converged or (fixed and run.outcome == "steps") for run in self.runs)

    @property
    def description(self) -> Description:
        """Mechanisms, means with errors, and reasons why runs stopped."""
        return self.describe_runs(self.optimizer)

    def dataset(self) -> xr.Dataset:
        """Return the measurements of every run over seed, with the path if it was recorded."""
        dataset = super().dataset()
        attributes = {name: attribute(value) for name, value in self.settings.to_dict().items()}
        dataset = dataset.assign_attrs(attributes)
        if self.path is None:
            return dataset
        names = {name: f"path_{name}" for name in self.path.data_vars}
        return dataset.merge(self.path.rename(names))
