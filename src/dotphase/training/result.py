"""What training gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import xarray as xr

from dotphase.finite.runs import Runs


@dataclass(frozen=True, kw_only=True)
class Training(Runs):
    """Trained students that differ in their seed only, with means and standard errors.

    Attributes
    ----------
    model, alpha, d, start, optimizer : as given to `train`; `start` is "custom" for a function
    n : sentences in a data set
    runs : every `Run`
    seconds : wall time
    path : loss, test error and overlaps of every run at every step, where they were recorded

    Examples
    --------
    >>> training = dp.train(dp.positional_semantic(), alpha=2.0, d=40, seeds=2, start="semantic")
    >>> training.n
    80
    """

    optimizer: str
    path: xr.Dataset | None = field(default=None, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """The result as plain numbers, lists and strings, ready for JSON."""
        return {"optimizer": self.optimizer, **super().to_dict()}

    def __str__(self) -> str:
        return self.described(self.optimizer)
