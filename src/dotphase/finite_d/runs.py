"""Results at finite dimension: single runs, and many runs with means and standard errors."""

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
from dotphase.storage.results import Result

if TYPE_CHECKING:
    import xarray as xr

#: Attributes of runs that are too long to print.
LONG_FIELDS = ("weights", "history", "assigned")

#: Quantities averaged over runs.
QUANTITIES = (
    "train_loss", "test_error", "test_error_sampled", "m", "theta", "q", "linear_test_error",
    "gradient_norm",
)  # fmt: skip


def result_bytes(model: Model, d: int) -> int:
    """Return the memory of a finished run: its weights and some numbers."""
    return 8 * d * model.student_rank + 2000


@contextmanager
def keep_finished(runs: Sequence[Any], result: Callable[[], Any]) -> Iterator[None]:
    """Turn an interrupt of the block into `Interrupted`, with the result of the finished runs."""
    try:
        yield
    except KeyboardInterrupt:
        if not runs:
            raise
        interrupt.begin_handover()
        raise Interrupted(result()) from None


@dataclass(frozen=True, eq=False, repr=False)
class Run(Printable):
    """One student on one data set.

    Attributes
    ----------
    index : index of the run, which together with the root seed determines data and start
    train_loss : final loss per dimension
    test_error : exact, from the measured overlaps through the Gaussian fields
    test_error_sampled, test_error_sampled_stderr : from held-out sentences
    m, theta, q : ``|Q^T p_1|/sqrt d``, ``|Q^T Sigma_1 Q*|/d``, ``|Q^T Sigma_1 Q|/d``
    linear_test_error : exact test error of the linear layer fitted to the same data; None where
        the model is not plain
    gradient_norm : norm of the gradient of the training loss
    semantic_alignment : ``|Q^T Q*|/(|Q| |Q*|)``, in [0, 1]
    positional_alignment : ``m/sqrt(m^2 + q)``, in [0, 1]
    converged : True if the run met its tolerance
    reason, outcome : why the run stopped, as a sentence and as one word
    iterations, seconds : steps taken; time, shared equally among the runs of a batch
    weights : final weights Q
    assigned : mechanism by the branches of the theory, from `dotphase.analysis.with_theory`

    Examples
    --------
    >>> training = dp.train(dp.positional_semantic(), alpha=2.0, d=40, seeds=2, start="semantic")
    >>> training.runs[0].mechanism
    'semantic'
    """

    index: int
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
    assigned: str | None = field(default=None, kw_only=True, repr=False)

    @property
    def diverged(self) -> bool:
        """True if the run diverged or met non-finite numbers; it has its last valid numbers."""
        return self.outcome in ("diverged", "not_finite")

    @property
    def mechanism(self) -> str:
        """Mechanism of the student: ``semantic``, ``positional``, ``mixed`` or ``uninformed``.

        It follows from `semantic_alignment` and `positional_alignment`; random weights have
        alignments of about ``1/sqrt d``. `dotphase.analysis.with_theory` replaces it by the branch
        of the theory whose minimum is nearest, or by ``uncertain`` between two of them.
        """
        return self.assigned or mechanism_of(
            self.semantic_alignment, self.positional_alignment, self.weights.shape[0]
        )

    @property
    def description(self) -> Description:
        """Mechanism and numbers."""
        state = "converged" if self.converged else f"not converged ({self.outcome})"
        title = (
            f"run {self.index}, {self.mechanism}: train_loss = {self.train_loss:.6g}, "
            f"test_error = {self.test_error:.6g}, {state}, {self.iterations} steps"
        )
        numbers = {name: value for name, value in self.to_dict().items() if type(value) is float}
        return Description(title, tuple((name, f"{v:.6g}") for name, v in numbers.items()))

    def to_dict(self) -> dict[str, Any]:
        """Return the run as numbers and strings, without its weights."""
        return {**fields_except(self, *LONG_FIELDS), "mechanism": self.mechanism}


@dataclass(frozen=True)
class Prediction:
    """Prediction of the theory for students with one mechanism.

    Attributes
    ----------
    values : predicted numbers; empty if the theory has no such branch
    stderr : their standard errors, where known
    at_d : names of the numbers that hold at this d; the others hold in the limit of large d
    note : why the numbers are missing or unreliable; empty if they are trusted
    """

    values: Mapping[str, float] = field(default_factory=dict)
    stderr: Mapping[str, float] = field(default_factory=dict)
    at_d: tuple[str, ...] = ()
    note: str = ""

    def __getitem__(self, name: str) -> float:
        return self.values[name]

    def format(self, name: str, d: int) -> str:
        """Return a number with its error, labeled by the dimension it holds at."""
        label = f"theory at d = {d}" if name in self.at_d else "theory"
        return f"{label}: {format_value(self.values[name], self.stderr.get(name))}"

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers by name, with ``stderr`` and ``note``, ready for JSON."""
        return {**self.values, "stderr": dict(self.stderr), "note": self.note}


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Runs(Result):
    """Base class of results: runs that differ only in their index, with means and standard errors.

    Attributes
    ----------
    model, alpha, d, start : arguments of the computation; `start` is "custom" for a function
    n : sentences in a data set
    runs : every `Run`
    seconds : wall time
    theory : predictions by mechanism, added by `dotphase.analysis.with_theory`
    """

    #: Quantities averaged over the runs.
    quantities: ClassVar[tuple[str, ...]] = QUANTITIES

    model: Model
    alpha: float
    d: int
    n: int
    start: str
    runs: tuple[Run, ...]
    seconds: float
    theory: dict[str, Prediction] = field(default_factory=dict)

    @property
    def converged(self) -> bool:
        """True if every run converged."""
        return all(run.converged for run in self.runs)

    @property
    def successful(self) -> bool:
        """True if every run ended as intended."""
        return self.converged

    @property
    def mean(self) -> dict[str, float | None]:
        """Means over the runs that did not diverge; None if all diverged."""
        samples = self._samples()
        return {name: float(row.mean()) if row.size else None for name, row in samples.items()}

    @property
    def stderr(self) -> dict[str, float | None]:
        """Standard errors of the means; None for fewer than two runs."""
        return {name: error_if_known(row) for name, row in self._samples().items()}

    def _samples(self) -> dict[str, np.ndarray]:
        """Return the averaged numbers: those of the runs that did not diverge and have one."""
        runs = [run for run in self.runs if not run.diverged]
        rows = {name: [getattr(run, name) for run in runs] for name in self.quantities}
        return {name: np.asarray([v for v in row if v is not None]) for name, row in rows.items()}

    @property
    def mechanisms(self) -> dict[str, int]:
        """Number of runs by mechanism, in falling order; diverged runs do not count."""
        counts = Counter(run.mechanism for run in self.runs if not run.diverged)
        return dict(counts.most_common())

    def select(self, mechanism: str) -> Self:
        """Return the runs with a mechanism."""
        runs = tuple(run for run in self.runs if run.mechanism == mechanism and not run.diverged)
        return replace(self, runs=runs)

    def with_predictions(self, theory: Mapping[str, Prediction]) -> Self:
        """Return the runs with predictions by mechanism, which are printed next to the means."""
        return replace(self, theory=dict(theory))

    def to_dict(self) -> dict[str, Any]:
        """Return the result as numbers, lists and strings, ready for JSON."""
        names = ("d", "n", "alpha", "start", "mean", "stderr", "converged", "seconds")
        result = {name: getattr(self, name) for name in names}
        result["runs"] = [run.to_dict() for run in self.runs]
        groups = {name: self.select(name) for name in self.mechanisms}
        result["mechanisms"] = {
            name: {"runs": len(group.runs), "mean": group.mean, "stderr": group.stderr}
            for name, group in groups.items()
        }
        if self.theory:
            result["theory"] = {name: row.to_dict() for name, row in self.theory.items()}
        return result

    def dataset(self) -> xr.Dataset:
        """Return the measurements of every run as a labeled dataset over seed."""
        import xarray as xr

        columns: dict[str, list[Any]] = {}
        for run in self.runs:
            for name, value in run.to_dict().items():
                if isinstance(value, bool | int | float | str) and name != "index":
                    columns.setdefault(name, []).append(value)
        names = ("alpha", "d", "n", "start")
        dataset = xr.Dataset(
            {name: ("seed", row) for name, row in columns.items() if len(row) == len(self.runs)},
            coords={"seed": [run.index for run in self.runs]},
            attrs=provenance(self.model, **{name: getattr(self, name) for name in names}),
        )
        return add_labels(dataset)

    def describe_runs(self, method: str, notes: Sequence[str] = ()) -> Description:
        """Describe the result: method, mechanisms, their means with errors, notes, outcomes."""
        counts = self.mechanisms
        learned = ", ".join(f"{count} {name}" for name, count in counts.items()) or "none"
        title = f"{self.start} start at alpha = {self.alpha:g}, d = {self.d}, {method}, "
        title += f"{len(self.runs)} run{'s' if len(self.runs) > 1 else ''}: {learned}"
        rows: list[tuple[str, str]] = []
        for name, count in counts.items():
            several = len(counts) > 1
            rows += [(f"{name} ({count})", "")] if several else []
            indent = "  " if several else ""
            means = self.select(name)._mean_rows(self.theory.get(name, Prediction()))
            rows += [(indent + label, value) for label, value in means]
        reasons = Counter(run.reason for run in self.runs)
        outcomes = [f"{count} of {len(self.runs)}: {text}" for text, count in reasons.items()]
        warnings = [
            f"{'NOT TRUSTED, the' if row.values else 'NO RESULT of the'} theory of {name} "
            f"students: {row.note}"
            for name, row in self.theory.items()
            if row.note
        ]
        return Description(title, tuple(rows), (*notes, *outcomes, *warnings))

    def _mean_rows(self, theory: Prediction) -> list[tuple[str, str]]:
        """Return rows of means with errors and, where known, predictions."""
        mean, stderr = self.mean, self.stderr
        rows = []
        for name, value in mean.items():
            if value is None or not np.isfinite(value):
                continue
            text = format_value(value, stderr[name])
            if name in theory.values:
                text = f"{text:<24} {theory.format(name, self.d)}"
            rows.append((name, text))
        return rows
