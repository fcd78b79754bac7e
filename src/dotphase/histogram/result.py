"""What an experiment gives, in memory and on disk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from dotphase.config.formatting import format_value
from dotphase.config.serialization import fields_except
from dotphase.errors import InvalidInput
from dotphase.histogram.between import LossBetween
from dotphase.histogram.introspect import Statistics
from dotphase.histogram.network import Network, select
from dotphase.histogram.task import Task
from dotphase.histogram.train import Trained
from dotphase.histogram.weights import NAMES
from dotphase.numerics.outcome import Outcome
from dotphase.storage.files import read_arrays, take_metadata, write_arrays

#: What is printed of the runs of a mechanism: means and standard deviations.
LABELS = {
    "held-out accuracy": "accuracy",
    "positional score": "positional_score",
    "semantic score": "semantic_score",
    "distance from start": "distance_from_start",
    "moved after release": "distance_after_release",
}

#: Version of the file.
LAYOUT = 2


@dataclass(frozen=True)
class Moved:
    """Distances over the parameters, one of each kind per run.

    Attributes
    ----------
    from_start, summed_from_start : from the initialisation to the constrained solution
    after_release, summed_after_release : from the constrained solution to where it is after
        the release; None if there was none

    The first of each pair is Euclidean over all parameters; the summed one adds up the
    Euclidean distances of the parameter arrays, which is what is published. Like there, the
    summed distance after the release leaves out the halves of the embeddings that the
    constraint had held at zero.
    """

    from_start: Float[np.ndarray, " runs"]
    summed_from_start: Float[np.ndarray, " runs"]
    after_release: Float[np.ndarray, " runs"] | None = None
    summed_after_release: Float[np.ndarray, " runs"] | None = None


@dataclass(frozen=True)
class Experiment:
    """Trained networks of one or both mechanisms; run k of each starts from its own seed.

    Attributes
    ----------
    task, settings : what was learned and how, as asked
    mechanism, run : which one each row below belongs to
    trained : networks and learning curves
    statistics : attention scores and accuracy per count, of each run, on held-out sequences
    moved : distances travelled
    released : networks and curves after the constraint was lifted, or None
    released_statistics : their scores
    landscape : loss between the first two solutions, or None
    device, seconds : where it ran, and how long in all

    Examples
    --------
    >>> result = dp.histogram.run("both", 1, 1, task=dp.histogram.Task(samples=200), dimension=8)
    >>> result.mechanism, result.network("semantic").query.shape
    (('semantic', 'positional'), (8, 8))
    """

    task: Task
    settings: Mapping[str, Any]
    mechanism: tuple[str, ...]
    run: tuple[int, ...]
    trained: Trained
    statistics: tuple[Statistics, ...]
    moved: Moved
    released: Trained | None = field(default=None, repr=False)
    released_statistics: tuple[Statistics, ...] = ()
    landscape: LossBetween | None = field(default=None, repr=False)
    device: str = ""
    seconds: float = 0.0

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The mechanisms that were trained."""
        return tuple(dict.fromkeys(self.mechanism))

    def rows(self, mechanism: str) -> np.ndarray:
        """Places of the runs of a mechanism."""
        return np.flatnonzero([name == mechanism for name in self.mechanism])

    def network(self, mechanism: str, run: int = 0, *, released: bool = False) -> Network:
        """A trained network, or what it became after its release."""
        rows = self.rows(mechanism)
        trained = self.released if released else self.trained
        if trained is None or not 0 <= run < len(rows):
            raise InvalidInput("run", run, f"must be one of the {len(rows)} {mechanism} runs")
        return select(trained.networks, int(rows[run]))

    def summary(self) -> dict[str, dict[str, Any]]:
        """Mean and standard deviation over runs, for each mechanism."""
        return {name: self._summarise(self.rows(name)) for name in self.mechanisms}

    def _summarise(self, rows: np.ndarray) -> dict[str, Any]:
        def scores(found: tuple[Statistics, ...], *names: str, after: str = "") -> dict[str, Any]:
            return {
                name + after: _mean_std([getattr(found[row], name) for row in rows])
                for name in names
            }

        both, weights = ("positional_score", "semantic_score"), ("equal_weight", "other_weight")
        shown: dict[str, Any] = {
            "runs": len(rows),
            "accuracy": _mean_std(self.trained.final_accuracy[rows]),
            "epochs": self.trained.epochs[rows].tolist(),
            **scores(self.statistics, *both, "input_variance", "self_weight", *weights),
            "accuracy_by_count": self._by_count(rows),
        }
        for name, values in vars(self.moved).items():
            if values is not None:
                shown["distance_" + name] = _mean_std(values[rows])
        if self.released is not None:
            shown["accuracy_after_release"] = _mean_std(self.released.final_accuracy[rows])
            shown |= scores(self.released_statistics, *both, after="_after_release")
        return shown

    def _by_count(self, rows: np.ndarray) -> list[float]:
        """Accuracy for tokens that occur once, twice, ..., over the tokens of all runs."""
        right = np.zeros(self.task.length)
        total = np.zeros(self.task.length)
        for row in rows:
            some = self.statistics[row]
            total += some.tokens_by_count
            right += np.nan_to_num(some.accuracy_by_count) * some.tokens_by_count
        shares: list[float] = np.where(total > 0, right / np.maximum(total, 1), np.nan).tolist()
        return shares

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings, without networks and curves."""
        shown: dict[str, Any] = {
            **self.settings,
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
            names = ("barrier", "aligned_barrier", "distance", "aligned_distance")
            shown["landscape"] = {name: getattr(self.landscape, name) for name in names}
        return shown

    def __str__(self) -> str:
        lines = []
        for name, shown in self.summary().items():
            lines.append(f"{name}: {shown['runs']} runs, {self.task.samples} samples")
            for label, part in LABELS.items():
                if part in shown:
                    mean, spread = shown[part]["mean"], shown[part]["std"]
                    lines.append(f"  {label:<20} {format_value(mean, spread)}")
        return "\n".join(lines)

    def save(self, path: str | Path) -> Path:
        """Write everything as one .npz of plain arrays and JSON text; see `load`."""
        target = Path(path)
        arrays: dict[str, np.ndarray] = {}
        for prefix, trained in (("trained", self.trained), ("released", self.released)):
            if trained is not None:
                arrays |= _trained_arrays(prefix, trained)
        for name, part in (("moved", self.moved), ("landscape", self.landscape)):
            if part is not None:
                some = {key: value for key, value in vars(part).items() if value is not None}
                arrays |= {f"{name}.{key}": np.asarray(value) for key, value in some.items()}
        about = {
            "layout": LAYOUT,
            "task": asdict(self.task),
            "settings": dict(self.settings),
            "mechanism": self.mechanism,
            "run": self.run,
            "statistics": [some.to_dict() for some in self.statistics],
            "released_statistics": [some.to_dict() for some in self.released_statistics],
            "device": self.device,
            "seconds": self.seconds,
        }
        write_arrays(target, arrays, about)
        return target


def load(path: str | Path) -> Experiment:
    """An experiment that was written by `Experiment.save`.

    Examples
    --------
    >>> result = dp.histogram.run("both", 1, 1, task=dp.histogram.Task(samples=200), dimension=8)
    >>> dp.histogram.load(result.save("histogram.npz")).mechanism
    ('semantic', 'positional')
    """
    arrays = read_arrays(Path(path), "experiment")
    about = take_metadata(arrays)
    if about.get("layout") != LAYOUT:
        raise InvalidInput("experiment", str(path), "must be a file written by this version")
    landscape = _part(arrays, "landscape")
    if landscape:
        landscape |= {key: float(landscape[key]) for key in ("distance", "aligned_distance")}
    return Experiment(
        task=Task(**about["task"]),
        settings=about["settings"],
        mechanism=tuple(about["mechanism"]),
        run=tuple(about["run"]),
        trained=_trained(_part(arrays, "trained")),
        statistics=_statistics(about["statistics"]),
        moved=Moved(**_part(arrays, "moved")),
        released=_trained(_part(arrays, "released")) if "released.epochs" in arrays else None,
        released_statistics=_statistics(about["released_statistics"]),
        landscape=LossBetween(**landscape) if landscape else None,
        device=about["device"],
        seconds=about["seconds"],
    )


def _trained_arrays(prefix: str, trained: Trained) -> dict[str, np.ndarray]:
    parts = {name: getattr(trained.networks, name) for name in NAMES}
    numbers = fields_except(trained, "networks")
    return {f"{prefix}.{key}": np.asarray(value) for key, value in (parts | numbers).items()}


def _trained(parts: dict[str, Any]) -> Trained:
    networks = Network(**{name: parts.pop(name) for name in NAMES})
    seconds = float(parts.pop("seconds_per_epoch"))
    return Trained(networks=networks, seconds_per_epoch=seconds, **parts)


def _part(arrays: Mapping[str, np.ndarray], prefix: str) -> dict[str, Any]:
    start = prefix + "."
    return {key[len(start) :]: value for key, value in arrays.items() if key.startswith(start)}


def _statistics(rows: list[dict[str, Any]]) -> tuple[Statistics, ...]:
    listed = ("accuracy_by_count", "tokens_by_count")
    return tuple(Statistics(**row | {key: tuple(row[key]) for key in listed}) for row in rows)


def _mean_std(values: Any) -> dict[str, float | None]:
    values = np.asarray(values, np.float64)
    spread = float(values.std(ddof=1)) if len(values) > 1 else None
    return {"mean": float(values.mean()), "std": spread}
