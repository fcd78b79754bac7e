"""Students on data sets: single runs, and many of them with means and standard errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from jaxtyping import Float

from dotphase.config.formatting import Description, Printable, format_value
from dotphase.config.serialization import fields_except
from dotphase.errors import Interrupted
from dotphase.finite_d.overlaps import mechanism_of
from dotphase.model import Model
from dotphase.numerics.statistics import error_if_known
from dotphase.runtime import interrupt
from dotphase.storage.labels import add_labels
from dotphase.storage.provenance import provenance

if TYPE_CHECKING:
    import xarray as xr

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
        interrupt.begin_handover()
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
        return {**fields_except(self, *UNSHOWN), "mechanism": self.mechanism}


@dataclass(frozen=True)
class Expected:
    """What the theory says of students with one mechanism.

    Attributes
    ----------
    values : numbers of the theory; empty where it has no such branch
    stderr : their standard errors, where they have one
    at_d : names of those at this d; the others are of the limit of large d
    note : what speaks against them, or why there are none; empty where they are trusted
    """

    values: Mapping[str, float] = field(default_factory=dict)
    stderr: Mapping[str, float] = field(default_factory=dict)
    at_d: tuple[str, ...] = ()
    note: str = ""

    def __getitem__(self, name: str) -> float:
        return self.values[name]

    def shown(self, name: str, d: int) -> str:
        """A number with its error, and whether it is at this d or of the limit."""
        of = f"theory at d = {d}" if name in self.at_d else "theory"
        return f"{of}: {format_value(self.values[name], self.stderr.get(name))}"

    def to_dict(self) -> dict[str, Any]:
        """The numbers by their names, with ``stderr`` and ``note``, ready for JSON."""
        return {**self.values, "stderr": dict(self.stderr), "note": self.note}


@dataclass(frozen=True, kw_only=True)
class Runs(Printable):
    """Runs that differ in their seed only, with means and standard errors; engines add to it.

    Attributes
    ----------
    model, alpha, d, start : as given; `start` is "custom" for a function
    n : sentences in a data set
    runs : every `Run`
    seconds : wall time
    theory : what the theory says of each mechanism, where it was asked for
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
    theory: dict[str, Expected] = field(default_factory=dict)

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
        return {name: error_if_known(row) for name, row in self._values().items()}

    def _values(self) -> dict[str, np.ndarray]:
        """What is averaged: the numbers of the runs that did not diverge and have one."""
        runs = [run for run in self.runs if not run.diverged]
        rows = {name: [getattr(run, name) for run in runs] for name in self.quantities}
        return {name: np.asarray([v for v in row if v is not None]) for name, row in rows.items()}

    @property
    def mechanisms(self) -> dict[str, int]:
        """How many runs found each mechanism, the most frequent first; not those that diverged."""
        found = Counter(run.mechanism for run in self.runs if not run.diverged)
        return dict(found.most_common())

    def of(self, mechanism: str) -> Self:
        """The runs that found a mechanism."""
        kept = tuple(run for run in self.runs if run.mechanism == mechanism and not run.diverged)
        return replace(self, runs=kept)

    @property
    def finished(self) -> bool:
        """Whether every run ended as it was meant to."""
        return self.converged

    def beside(self, theory: Mapping[str, Expected]) -> Self:
        """The same with what the theory says of each mechanism, to be printed beside."""
        return replace(self, theory=dict(theory))

    def to_dict(self) -> dict[str, Any]:
        """The result as plain numbers, lists and strings, ready for JSON."""
        names = ("d", "n", "alpha", "start", "mean", "stderr", "converged", "runs", "seconds")
        shown = {name: getattr(self, name) for name in names}
        kinds = {
            name: {"runs": count, "mean": self.of(name).mean, "stderr": self.of(name).stderr}
            for name, count in self.mechanisms.items()
        }
        runs = [run.to_dict() for run in self.runs]
        shown |= {"runs": runs, "mechanisms": kinds}
        if self.theory:
            shown["theory"] = {name: expected.to_dict() for name, expected in self.theory.items()}
        return shown

    def dataset(self) -> xr.Dataset:
        """What was measured of every run, as a labelled dataset over seed."""
        import xarray as xr

        rows: dict[str, list[Any]] = {}
        for run in self.runs:
            for name, value in run.to_dict().items():
                if isinstance(value, bool | int | float | str) and name != "seed":
                    rows.setdefault(name, []).append(value)
        asked = {name: getattr(self, name) for name in ("alpha", "d", "n", "start")}
        found = xr.Dataset(
            {name: ("seed", row) for name, row in rows.items() if len(row) == len(self.runs)},
            coords={"seed": [run.seed for run in self.runs]},
            attrs=provenance(self.model, **asked),
        )
        return add_labels(found)

    def described(self, how: str, more: Sequence[str] = ()) -> Description:
        """The result in words: how it was found, what was learned, means with errors for each
        mechanism, `more`, why runs stopped."""
        kinds = self.mechanisms
        learned = ", ".join(f"{count} {name}" for name, count in kinds.items()) or "none"
        head = f"{self.start} start at alpha = {self.alpha:g}, d = {self.d}, {how}, "
        head += f"{len(self.runs)} run{'s' if len(self.runs) > 1 else ''}: {learned}"
        rows: list[tuple[str, str]] = []
        for name, count in kinds.items():
            several = len(kinds) > 1
            rows += [(f"{name} ({count})", "")] if several else []
            indent = "  " if several else ""
            found = self.of(name)._rows(self.theory.get(name, Expected()))
            rows += [(indent + label, value) for label, value in found]
        reasons = [run.reason for run in self.runs]
        why = [f"{reasons.count(one)} of {len(reasons)}: {one}" for one in dict.fromkeys(reasons)]
        return Description(head, tuple(rows), (*more, *why, *self._doubts()))

    def _doubts(self) -> list[str]:
        """What the theory does not say, or not reliably."""
        return [
            f"{'NOT TRUSTED, the' if expected.values else 'NO RESULT of the'} theory of {name} "
            f"students: {expected.note}"
            for name, expected in self.theory.items()
            if expected.note
        ]

    def _rows(self, theory: Expected) -> list[tuple[str, str]]:
        """Means with errors, beside those of the theory."""
        mean, stderr = self.mean, self.stderr
        rows = []
        for name, value in mean.items():
            if value is None or not np.isfinite(value):
                continue
            shown = format_value(value, stderr[name])
            if name in theory.values:
                shown = f"{shown:<24} {theory.shown(name, self.d)}"
            rows.append((name, shown))
        return rows
