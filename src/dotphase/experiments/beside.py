"""The theory beside trained students: what it says of each mechanism they found, at their d."""

from __future__ import annotations

from typing import TypeVar

from dotphase.errors import InvalidInput
from dotphase.experiments.curve import SETTINGS
from dotphase.finite.runs import Runs
from dotphase.theory.branches import BRANCHES
from dotphase.theory.dimension import is_known
from dotphase.theory.solve import solve_many

R = TypeVar("R", bound=Runs)

#: What theory and runs have in common.
COMPARED = ("train_loss", "test_error", "m", "theta", "q", "linear_test_error")


def with_theory(runs: R) -> R:
    """Runs with the numbers of the theory beside their means, in print and in `to_dict`.

    Every mechanism that was found is looked up: the branch of its name at the same alpha, with
    the known terms of order 1/d of the losses (`dotphase.results.Solution.at`). One that the theory
    does not have there is left out.

    Parameters
    ----------
    runs : Training or MessagePassing
        From `dotphase.train` or `dotphase.amp`.

    Examples
    --------
    >>> runs = dp.train(dp.positional_semantic(), alpha=2.0, d=40, seeds=2, start="semantic")
    >>> beside = dp.analysis.with_theory(runs)
    >>> sorted(beside.theory["semantic"])
    ['linear_test_error', 'm', 'q', 'test_error', 'theta', 'train_loss']
    """
    if not is_known(runs.model):
        raise InvalidInput(
            "runs", runs.model, "must be of a model whose terms of order 1/d are known"
        )
    names = [name for name in runs.mechanisms if name in BRANCHES]
    problems = [(runs.model, runs.alpha, name) for name in names]
    found = {}
    for solution in solve_many(problems, settings=SETTINGS):
        if solution.there:
            finite = solution.at(runs.d)
            found[solution.branch] = {name: finite.value(name) for name in COMPARED}
    return runs.beside(found)
