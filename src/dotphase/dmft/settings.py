"""Settings of the dynamics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from dotphase.config import validation
from dotphase.finite_d.datasets import check_dtype

#: log2 of the fewest sentences of an ensemble.
LEAST = 6


@dataclass(frozen=True)
class DynamicsSettings:
    """How accurately the dynamics is computed.

    Parameters
    ----------
    log2_ensemble : int
        log2 of the effective sentences of a repetition; more are taken for many steps.
    repetitions : int
        Independent ensembles; their spread is the standard error. At finite d, runs.
    rtol : float, optional
        Ensembles are doubled until the standard errors, relative to the largest value that a
        quantity has, are below this at every step. Numbers are continued to 1/N = 0 from two
        sizes; None for ensembles of one size, where a shift of order 1/N remains.
    max_log2_ensemble : int
        log2 of the largest ensemble.
    seed : int
        Seed of everything random.
    dtype : {"float64", "float32"}
        Precision in which the history is kept; float32 needs half of the memory and time.
    """

    log2_ensemble: int = 12
    repetitions: int = 8
    rtol: float | None = 0.01
    max_log2_ensemble: int = 13
    seed: int = 0
    dtype: str = "float64"

    def __post_init__(self) -> None:
        validation.integer("log2_ensemble", self.log2_ensemble, at_least=LEAST, at_most=24)
        validation.integer("max_log2_ensemble", self.max_log2_ensemble, at_least=LEAST, at_most=24)
        validation.integer("repetitions", self.repetitions, at_least=1, at_most=2**16)
        validation.integer("seed", self.seed, at_least=0)
        if self.rtol is not None:
            validation.number("rtol", self.rtol, above=0)
        check_dtype(self.dtype)


class DynamicsFields(TypedDict, total=False):
    """The fields of `DynamicsSettings` as keywords of a function."""

    log2_ensemble: int
    repetitions: int
    rtol: float | None
    max_log2_ensemble: int
    seed: int
    dtype: str
