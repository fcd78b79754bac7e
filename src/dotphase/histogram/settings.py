"""Settings of the histogram task."""

from dataclasses import asdict, dataclass, field
from typing import Any, TypedDict

from dotphase.config import validation
from dotphase.histogram.task import Task
from dotphase.runtime import memory_limit

#: Default number of sequences in a batch.
BATCH_SIZE = 32
#: Default epochs of gradient descent after the release (arXiv:2402.03902).
RELEASE_EPOCHS = 100


@dataclass(frozen=True)
class HistogramSettings:
    """Data, network sizes and seed.

    Parameters
    ----------
    task : Task
        Sequences; those of the paper by default.
    dimension : int
        Dimension of the embeddings.
    hidden : int
        Number of hidden units.
    batch_size : int
        Sequences in a batch.
    seed : int
        Seed of all random numbers: the data, which all runs share, and the initializations and
        batches of the runs. Run k does not depend on the number of runs.

    Examples
    --------
    >>> dp.histogram.HistogramSettings(dimension=8).hidden
    128
    """

    task: Task = field(default_factory=Task)
    dimension: int = 64
    hidden: int = 128
    batch_size: int = BATCH_SIZE
    seed: int = 0

    def __post_init__(self) -> None:
        bounds = {"dimension": 2, "hidden": 1, "batch_size": 1, "seed": 0}
        for name, at_least in bounds.items():
            validation.integer(name, getattr(self, name), at_least=at_least)

    def check_runs(self, runs: Any) -> int:
        """Return the number of runs; refuse it if networks and optimizer do not fit into memory."""
        inputs = self.task.symbols + self.task.length
        parameters = self.dimension * (inputs + 4 * self.dimension + 2 * self.hidden)
        runs = validation.integer("runs", runs, at_least=1)
        return memory_limit.check_storage("runs", runs, 8 * 4 * parameters)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain numbers, ready for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class ExperimentSettings(HistogramSettings):
    """Settings of `run`: `HistogramSettings` and the training.

    Parameters
    ----------
    epochs : int
        Largest number of epochs (Adam, 1e-3).
    target : float, optional
        Held-out accuracy at which a run stops.
    release : bool
        True to lift the constraint afterwards and continue by SGD.
    release_epochs : int
        Epochs after the release.
    landscape : bool
        True to compute the loss between the first semantic and the first positional solution.

    Examples
    --------
    >>> dp.histogram.ExperimentSettings(epochs=20, target=0.998).release
    False
    """

    epochs: int = 200
    target: float | None = None
    release: bool = False
    release_epochs: int = RELEASE_EPOCHS
    landscape: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("epochs", "release_epochs"):
            validation.integer(name, getattr(self, name), at_least=1)
        if self.target is not None:
            validation.number("target", self.target, above=0, at_most=1)


class HistogramFields(TypedDict, total=False):
    """The fields of `HistogramSettings` as keywords of a function."""

    task: Task
    dimension: int
    hidden: int
    batch_size: int
    seed: int


class ExperimentFields(HistogramFields, total=False):
    """The fields of `ExperimentSettings` as keywords of a function."""

    epochs: int
    target: float | None
    release: bool
    release_epochs: int
    landscape: bool
