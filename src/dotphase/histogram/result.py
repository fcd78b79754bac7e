"""The result of `dotphase.histogram.run`: `Experiment`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from dotphase.config.formatting import Description, format_value
from dotphase.errors import InvalidInput
from dotphase.histogram.interpolation import LossBetween
from dotphase.histogram.introspect import Statistics
from dotphase.histogram.network import Network, select
from dotphase.histogram.settings import ExperimentSettings
from dotphase.histogram.task import Task
from dotphase.histogram.train import Trained
from dotphase.numerics.outcome import Outcome
from dotphase.storage.provenance import provenance
from dotphase.storage.results import Result

if TYPE_CHECKING:
    import xarray as xr

#: Rows of the printed summary, each with mean and standard deviation.
LABELS = {
    "held-out accuracy": "accuracy",
    "positional score": "positional_score",
    "semantic score": "semantic_score",
    "distance from start": "distance_from_start",
    "moved after release": "distance_after_release",
}
#: Learning curves and statistics in the dataset, with their long names.
CURVES = {
    "train_loss": "training loss",
    "held_out_loss": "held-out loss",
    "accuracy": "held-out accuracy",
}
STATISTICS = {
    "input_variance": "variance of attention across sequences",
    "position_variance": "variance of mean attention across positions",
    "positional_score": "positional score",
    "self_weight": "mean weight of a token on itself",
    "equal_weight": "mean weight on an equal token",
    "other_weight": "mean weight on another token",
    "semantic_score": "semantic score",
}
DISTANCES = {
    "from_start": "distance from the initialization",
    "summed_from_start": "summed distance from the initialization",
    "after_release": "distance moved after the release",
    "summed_after_release": "summed distance moved after the release",
}
#: Scores in the summary.
SCORES = ("positional_score", "semantic_score")


@dataclass(frozen=True, eq=False)
class Distances:
    """Distances in parameter space, one of each kind per run.

    The first of each pair is Euclidean over all parameters. The summed one adds up the Euclidean
    distances of the parameter arrays, as in the published numbers. Like these, the summed distance
    after the release leaves out the halves of the embeddings that were constrained to zero.

    Attributes
    ----------
    from_start, summed_from_start : from the initialization to the constrained solution
    after_release, summed_after_release : from the constrained solution to the end of the training
        after the release; None without release
    """

    from_start: Float[np.ndarray, " runs"]
    summed_from_start: Float[np.ndarray, " runs"]
    after_release: Float[np.ndarray, " runs"] | None = None
    summed_after_release: Float[np.ndarray, " runs"] | None = None

    def items(self) -> Iterator[tuple[str, np.ndarray]]:
        """Names and values of the distances that are not None."""
        return ((name, values) for name, values in vars(self).items() if values is not None)


@dataclass(frozen=True, eq=False)
class Experiment(Result):
    """Trained networks of one or both mechanisms.

    Attributes
    ----------
    settings : data, network sizes and training
    mechanism, run : mechanism and index of the run of each row below
    trained : networks and learning curves
    statistics : attention scores and accuracies of each run on held-out sequences
    distances : distances in parameter space
    released : networks and curves after the release; None without release
    released_statistics : their attention scores and accuracies
    landscape : loss between the first two solutions; None unless requested
    device, seconds : device of the computation, and wall time

    Examples
    --------
    >>> small = {"task": dp.histogram.Task(samples=200), "dimension": 8}
    >>> result = dp.histogram.run("both", runs=1, epochs=1, **small)
    >>> result.mechanism, result.network("semantic").query.shape
    (('semantic', 'positional'), (8, 8))
    """

    settings: ExperimentSettings
    mechanism: tuple[str, ...]
    run: tuple[int, ...]
    trained: Trained = field(repr=False)
    statistics: tuple[Statistics, ...] = field(repr=False)
    distances: Distances = field(repr=False)
    released: Trained | None = field(default=None, repr=False)
    released_statistics: tuple[Statistics, ...] = field(default=(), repr=False)
    landscape: LossBetween | None = field(default=None, repr=False)
    device: str = ""
    seconds: float = 0.0

    @property
    def task(self) -> Task:
        """Sequences of the experiment."""
        return self.settings.task

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """Names of the trained mechanisms."""
        return tuple(dict.fromkeys(self.mechanism))

    @property
    def runs(self) -> int:
        """Number of runs of each mechanism."""
        return 1 + max(self.run)

    def rows(self, mechanism: str) -> np.ndarray:
        """Return the row indices of the runs of a mechanism."""
        return np.flatnonzero([name == mechanism for name in self.mechanism])

    def network(self, mechanism: str, run: int = 0, *, released: bool = False) -> Network:
        """Return a trained network, before or after its release."""
        rows = self.rows(mechanism)
        trained = self.released if released else self.trained
        if trained is None or not 0 <= run < len(rows):
            raise InvalidInput("run", run, f"must be one of the {len(rows)} {mechanism} runs")
        return select(trained.networks, int(rows[run]))

    def summary(self) -> dict[str, dict[str, Any]]:
        """Return mean and standard deviation over runs, for each mechanism."""
        return {name: self._summarize(self.rows(name)) for name in self.mechanisms}

    def _summarize(self, rows: np.ndarray) -> dict[str, Any]:
        """Mean and standard deviation over the runs of one mechanism."""

        def scores(statistics: tuple[Statistics, ...], *names: str) -> dict[str, Any]:
            return {
                name: _mean_std([getattr(statistics[row], name) for row in rows]) for name in names
            }

        weights = ("input_variance", "self_weight", "equal_weight", "other_weight")
        summary: dict[str, Any] = {
            "runs": len(rows),
            "accuracy": _mean_std(self.trained.final_accuracy[rows]),
            "epochs": self.trained.epochs[rows].tolist(),
            **scores(self.statistics, *SCORES, *weights),
            "accuracy_by_count": self._accuracy_by_count(rows),
        }
        for name, values in self.distances.items():
            summary["distance_" + name] = _mean_std(values[rows])
        if self.released is not None:
            summary["accuracy_after_release"] = _mean_std(self.released.final_accuracy[rows])
            for name, value in scores(self.released_statistics, *SCORES).items():
                summary[name + "_after_release"] = value
        return summary

    def _accuracy_by_count(self, rows: np.ndarray) -> list[float]:
        """Accuracy for tokens that occur once, twice, ..., over the tokens of several runs."""
        tokens = np.asarray([self.statistics[row].tokens_by_count for row in rows])
        accuracy = np.asarray([self.statistics[row].accuracy_by_count for row in rows])
        total, correct = tokens.sum(axis=0), (np.nan_to_num(accuracy) * tokens).sum(axis=0)
        shares: list[float] = np.where(total > 0, correct / np.maximum(total, 1), np.nan).tolist()
        return shares

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and strings, without networks and curves, ready for JSON."""
        result: dict[str, Any] = {
            **self.settings.to_dict(),
            "mechanism": "both" if len(self.mechanisms) > 1 else self.mechanism[0],
            "runs": self.runs,
            "summary": self.summary(),
            "runs_done": [
                {
                    "mechanism": self.mechanism[row],
                    "run": self.run[row],
                    "accuracy": float(self.trained.final_accuracy[row]),
                    "epochs": int(self.trained.epochs[row]),
                    "outcome": Outcome(self.trained.outcome[row]).word,
                    "attention": self.statistics[row].to_dict(),
                }
                for row in range(len(self.mechanism))
            ],
            "seconds_per_epoch": self.trained.seconds_per_epoch,
            "device": self.device,
            "seconds": self.seconds,
        }
        if self.landscape is not None:
            result["landscape"] = self.landscape.to_dict()
        return result

    def dataset(self) -> xr.Dataset:
        """Return curves, scores and distances as a labeled dataset over `network`."""
        import xarray as xr

        variables, coords = dict[str, Any](), dict[str, Any]()
        phases = [("", "epoch", self.trained, self.statistics)]
        if self.released is not None:
            phases += [("released_", "released_epoch", self.released, self.released_statistics)]
        for prefix, epoch, trained, statistics in phases:
            coords[epoch] = _labeled(epoch, np.arange(trained.accuracy.shape[1]) + 1, "epoch")
            for name, text in CURVES.items():
                curves = getattr(trained, name)
                variables[prefix + name] = _labeled(("network", epoch), curves, text)
            for name, text in STATISTICS.items():
                scores = [getattr(row, name) for row in statistics]
                variables[prefix + name] = _labeled("network", scores, text)
            name, by_count = "accuracy_by_count", [row.accuracy_by_count for row in statistics]
            dims, text = ("network", "occurrences"), "accuracy by occurrences of a token"
            variables[prefix + name] = _labeled(dims, by_count, text)
        for name, values in self.distances.items():
            variables[f"distance_{name}"] = _labeled("network", values, DISTANCES[name])
        coords["mechanism"] = ("network", list(self.mechanism))
        coords["run"] = _labeled("network", list(self.run), "index of the run")
        occurrences = np.arange(1, self.task.length + 1)
        coords["occurrences"] = _labeled("occurrences", occurrences, "occurrences of a token")
        attributes = self.settings.to_dict() | {"device": self.device, "seconds": self.seconds}
        task = attributes.pop("task")
        return xr.Dataset(variables, coords, provenance(None, **attributes, **task))

    @property
    def description(self) -> Description:
        """Means and standard deviations over runs, for each mechanism."""
        rows: list[tuple[str, str]] = []
        for name, summary in self.summary().items():
            rows.append((name, f"{summary['runs']} runs"))
            for label, key in LABELS.items():
                if key in summary:
                    mean, spread = summary[key]["mean"], summary[key]["std"]
                    rows.append((f"  {label}", format_value(mean, spread)))
        return Description(f"networks that count, {self.task.samples} samples", tuple(rows))


def _labeled(dims: Any, values: Any, long_name: str) -> tuple[Any, Any, dict[str, str]]:
    """Variable of a dataset with long name and units."""
    return dims, values, {"long_name": long_name, "units": "1"}


def _mean_std(values: Any) -> dict[str, float | None]:
    values = np.asarray(values, np.float64)
    spread = float(values.std(ddof=1)) if len(values) > 1 else None
    return {"mean": float(values.mean()), "std": spread}
