"""Verdicts: does our number agree with the published one, or with another engine's?

A verdict must be able to fail. Every comparison has a noise (the standard error of the difference)
and a largest difference that counts as agreement. Both give its detection limit. The verdict
"agrees" requires that the comparison would have detected twice the difference that matters.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from scipy.special import ndtr, stdtrit

from reproduction.facts import Fact

#: Numbers agree within this many standard errors plus this share of the reference. The share covers
#: differences without an error bar: the length of a training, terms of order 1/d.
ERRORS, SHARE = 3.0, 0.01
AGREES, DIFFERS = "agrees", "differs"
#: Our number is converged, and the published one differs from it.
OFF = "published is off"
#: The theory is not trusted at this point: the difference is its model error.
OUTSIDE = "outside the theory"
#: The comparison is too coarse to fail: a number without a verdict.
UNDECIDED = "no verdict"

#: Default difference that matters, as a fraction of the reference. Published means have the noise
#: of few runs and a larger one.
MATTERS, NOISY = 0.03, 0.05
#: A true difference of `allowed` plus this number of standard errors is caught 39 times in 40.
CAUGHT = 2.0


def allowed_difference(reference: float, *errors: float, share: float = SHARE) -> float:
    """Largest difference that counts as agreement with `reference`."""
    return ERRORS * math.hypot(*errors) + share * abs(reference)


def widening(seeds: int | None) -> float:
    """Factor by which Student's t widens a standard error from few data sets.

    `ERRORS` widened errors have the coverage of a normal law: the factor is 3.1 for four data sets,
    1.1 for 24. Without a number of data sets the error is taken as known.
    """
    return 1.0 if seeds is None else float(stdtrit(seeds - 1, ndtr(ERRORS))) / ERRORS


@dataclass(frozen=True)
class Row:
    """One line of the report.

    Attributes
    ----------
    quantity, at : compared quantity, and its conditions
    reference : the number compared with
    reference_error : its standard error, or None if unknown
    origin : source of the reference: a publication, or another engine of this package
    ours, stderr : our number and its standard error
    allowed : largest difference that counts as agreement
    verdict : `AGREES`, `OFF`, `DIFFERS`, `OUTSIDE` or `UNDECIDED`
    why : the rule that was used, or the evidence
    noise : standard error of the difference, unpublished errors included, widened for few data sets
    tolerance : difference that matters
    """

    quantity: str
    at: dict[str, Any]
    reference: float
    reference_error: float | None
    origin: str
    ours: float
    stderr: float
    allowed: float
    verdict: str
    why: str
    noise: float = 0.0
    tolerance: float = 0.0

    @property
    def difference(self) -> float:
        """Ours minus the reference."""
        return self.ours - self.reference

    @property
    def catches(self) -> float:
        """The smallest true difference that would be caught."""
        return self.allowed + CAUGHT * self.noise

    @property
    def has_power(self) -> bool:
        """True if twice the difference that matters would be caught."""
        return self.catches <= 2 * self.tolerance * (1 + 1e-9)

    def judged(self) -> Row:
        """The row with the verdict of its numbers."""
        # A difference of NaN does not agree.
        verdict = AGREES if abs(self.difference) <= self.allowed else DIFFERS
        if verdict == AGREES and not self.has_power:
            verdict = UNDECIDED
        return replace(self, verdict=verdict)

    def outside(self, why: str) -> Row:
        """The row with the verdict for points at which the theory is not trusted."""
        return replace(self, verdict=OUTSIDE, why=why)

    def to_dict(self) -> dict[str, Any]:
        """The row as plain values, ready for JSON."""
        return {**asdict(self), "difference": self.difference, "catches": self.catches}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Row:
        """Invert `to_dict`; null becomes NaN again."""
        columns = {field.name: values[field.name] for field in fields(cls)}
        missing = [name for name in ("ours", "stderr", "noise") if columns[name] is None]
        return cls(**columns | dict.fromkeys(missing, math.nan))


def against_runs(
    fact: Fact,
    ours: float,
    stderr: float,
    spread: float,
    tolerance: float | None = None,
    share: float = SHARE,
    seeds: int | None = None,
) -> Row:
    """Compare with a published mean over runs.

    Parameters
    ----------
    ours, stderr : float
        Our mean and its standard error.
    spread : float
        Our standard deviation over runs; replaces the published one where there is none.
    tolerance : float, optional
        Difference that matters, `NOISY` of the published number if not given.
    share : float
        Allowed relative difference besides the errors.
    seeds : int, optional
        Number of our data sets, for `widening`.
    """
    runs = fact.runs or 1
    error = (spread if fact.spread is None else fact.spread) / math.sqrt(runs)
    widened = widening(seeds) * stderr
    allowed = allowed_difference(fact.value, widened, error, share=share) + fact.rounding
    why = _within_errors(share, seeds)
    tolerance = NOISY * abs(fact.value) if tolerance is None else tolerance
    # Do not show our estimate as a published error.
    reference_error = None if fact.spread is None else error
    noise = math.hypot(widened, error)
    return _row(fact, reference_error, (ours, stderr), allowed, why, noise, tolerance)


def within_range(fact: Fact, ours: float, stderr: float, alternative: float) -> Row:
    """Compare with a published range of rounded numbers.

    `other` is the value that would mean something else, uniform attention say; a quarter of the way
    to it matters.
    """
    noise = 0.0 if math.isnan(stderr) else stderr
    allowed = (fact.spread or 0.0) + fact.rounding + ERRORS * noise
    why = f"within the published range, its rounding and {ERRORS:g} standard errors"
    tolerance = abs(alternative - fact.value) / 4
    return _row(fact, fact.spread, (ours, stderr), allowed, why, noise, tolerance)


def against_equations(fact: Fact, ours: float, stderr: float, settled: str | None) -> Row:
    """Compare with a published solution of the same equations.

    Both solve the same equations, so a difference beyond our error and the rounding of the
    printed digits is an error of one of them. Ours counts as correct if `settled` gives evidence.

    Parameters
    ----------
    settled : str or None
        Evidence that our number has converged at this point; None without evidence.
    """
    allowed = ERRORS * stderr + fact.rounding
    why = f"at most {ERRORS:g} standard errors plus rounding apart"
    row = _row(fact, None, (ours, stderr), allowed, why, stderr, None)
    if not math.isfinite(ours):
        return replace(row, why="our theory has no such point")
    if row.verdict == DIFFERS and settled is None:
        return replace(row, why="no evidence which of the two is off")
    if row.verdict == DIFFERS:
        percent = 100 * (fact.value / ours - 1)
        reason = f" ({fact.note})" if fact.note else ""
        why = f"published value {percent:+.1f}%{reason}, assuming the same equations; {settled}"
        return replace(row, verdict=OFF, why=why)
    return row


def between_engines(
    quantity: str,
    at: dict[str, Any],
    reference: tuple[float, float],
    ours: tuple[float, float],
    origin: str = "theory",
    share: float = SHARE,
    tolerance: float | None = None,
    seeds: int | None = None,
) -> Row:
    """Compare two engines of this package, each given as (value, standard error).

    `origin` names the engine of `reference`; `tolerance` and `seeds` as in `against_runs`.
    """
    widened = widening(seeds) * ours[1]
    allowed = allowed_difference(reference[0], reference[1], widened, share=share)
    why = _within_errors(share, seeds)
    noise = math.hypot(reference[1], widened)
    matters = MATTERS * abs(reference[0]) if tolerance is None else tolerance
    numbers = (*reference, f"{origin}, this run", *ours, allowed, "", why, noise, matters)
    return Row(quantity, at, *numbers).judged()


def within(
    quantity: str,
    at: dict[str, Any],
    reference: float,
    ours: tuple[float, float],
    allowed: float,
    origin: str,
    why: str,
    tolerance: float,
) -> Row:
    """Compare with a number without an error; `allowed` is the largest difference that agrees."""
    numbers = (reference, None, origin, *ours, allowed, "", why, ours[1], tolerance)
    return Row(quantity, at, *numbers).judged()


def _within_errors(share: float, seeds: int | None) -> str:
    """The rule of a comparison with standard errors, in words."""
    text = f"at most {ERRORS:g} combined standard errors plus {100 * share:g}% apart"
    if widening(seeds) < 1.2:
        return text
    return f"{text}; ours is widened by {widening(seeds):.1f} for {seeds} data sets"


def _row(
    fact: Fact,
    error: float | None,
    ours: tuple[float, float],
    allowed: float,
    why: str,
    noise: float,
    tolerance: float | None,
) -> Row:
    matters = MATTERS * abs(fact.value) if tolerance is None else tolerance
    published = (fact.quantity, fact.at, fact.value, error, fact.source)
    return Row(*published, *ours, allowed, "", why, noise, matters).judged()
