"""Verdicts: does our number agree with the published one, or with another engine's?"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from dotphase.experiments.agreement import AGREES, ERRORS, SHARE, judge
from dotphase.experiments.agreement import allowed as largest
from dotphase.report.facts import Fact

#: The third verdict: ours is converged, and the published number is another one.
OFF = "published is off"


@dataclass(frozen=True)
class Row:
    """One line of the report.

    Attributes
    ----------
    quantity, at : what is compared, and under which conditions
    reference : the number compared with
    reference_error : its standard error, as far as it is known
    origin : where the reference is from: a publication, or another engine of this package
    ours, stderr : our number
    allowed : largest difference that counts as agreement
    verdict : `AGREES`, `OFF` or `DIFFERS`
    why : the rule that was used, or the evidence
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

    @property
    def difference(self) -> float:
        """Ours minus the reference."""
        return self.ours - self.reference

    def to_dict(self) -> dict[str, Any]:
        """The row as plain values, ready for JSON."""
        return {**asdict(self), "difference": self.difference}


def against_runs(fact: Fact, ours: float, stderr: float, spread: float) -> Row:
    """Compare with a published mean over runs.

    Parameters
    ----------
    ours, stderr : float
        Our mean and its standard error.
    spread : float
        Our standard deviation over runs; stands in for the published one where there is none.
    """
    runs = fact.runs or 1
    error = (spread if fact.spread is None else fact.spread) / math.sqrt(runs)
    allowed = largest(fact.value, stderr, error) + fact.rounding
    why = f"at most {ERRORS:g} combined standard errors plus {100 * SHARE:g}% apart"
    # An error that was not published is not shown as if it had been.
    shown = None if fact.spread is None else error
    return _row(fact, shown, ours, stderr, allowed, why)


def within_deviations(fact: Fact, ours: float, stderr: float, deviations: float = 2.0) -> Row:
    """Compare with a published mean by its standard deviation over runs."""
    if fact.spread is None:
        raise ValueError(f"{fact.table} {fact.quantity} was published without a spread")
    why = f"our mean within {deviations:g} published standard deviations"
    return _row(fact, fact.spread, ours, stderr, deviations * fact.spread, why)


def within_range(fact: Fact, ours: float, stderr: float, slack: float) -> Row:
    """Compare with a published range, widened on both sides by `slack`."""
    allowed = (fact.spread or 0.0) + slack
    why = f"within {slack:g} of the published range"
    return _row(fact, fact.spread, ours, stderr, allowed, why)


def against_equations(fact: Fact, ours: float, stderr: float, settled: str | None) -> Row:
    """Compare with a published solution of the same equations.

    Both solve the same equations, so a difference beyond our error and the rounding of the
    printed digits is an error of one of them. Ours is taken to be right if `settled` says why.

    Parameters
    ----------
    settled : str or None
        Evidence that our number has converged; None if there is none.
    """
    allowed = ERRORS * stderr + fact.rounding
    verdict = judge(ours - fact.value, allowed)
    if not math.isfinite(ours):
        why = "we find no such point"
    elif verdict == AGREES:
        why = f"at most {ERRORS:g} standard errors plus rounding apart"
    elif settled is None:
        why = "no evidence on which of the two is off"
    else:
        percent = 100 * (fact.value / ours - 1)
        reason = f" ({fact.note})" if fact.note else ""
        verdict, why = OFF, f"published value {percent:+.1f}%{reason}; {settled}"
    return _row(fact, None, ours, stderr, allowed, why, verdict)


def between_engines(
    quantity: str,
    at: dict[str, Any],
    reference: tuple[float, float],
    ours: tuple[float, float],
    origin: str = "theory",
    share: float = SHARE,
) -> Row:
    """Compare two engines of this package, each given as (value, standard error).

    `origin` is the one that `reference` is from.
    """
    allowed = largest(reference[0], reference[1], ours[1], share=share)
    verdict = judge(ours[0] - reference[0], allowed)
    why = f"at most {ERRORS:g} combined standard errors plus {100 * share:g}% apart"
    return Row(quantity, at, *reference, f"{origin}, this run", *ours, allowed, verdict, why)


def within(
    quantity: str,
    at: dict[str, Any],
    reference: float,
    ours: tuple[float, float],
    allowed: float,
    origin: str,
    why: str,
) -> Row:
    """Compare with a number that has no error, by a difference that is said to be allowed."""
    verdict = judge(ours[0] - reference, allowed)
    return Row(quantity, at, reference, None, origin, *ours, allowed, verdict, why)


def _row(
    fact: Fact,
    error: float | None,
    ours: float,
    stderr: float,
    allowed: float,
    why: str,
    verdict: str | None = None,
) -> Row:
    verdict = verdict or judge(ours - fact.value, allowed)
    published = (fact.quantity, fact.at, fact.value, error, fact.source)
    return Row(*published, ours, stderr, allowed, verdict, why)
