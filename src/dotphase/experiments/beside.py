"""The theory beside trained students: what it says of each mechanism they found, at their d."""

from __future__ import annotations

from typing import TypeVar, Unpack

from dotphase.errors import InvalidInput
from dotphase.experiments.curve import SETTINGS
from dotphase.finite.runs import Runs
from dotphase.theory.branches import BRANCHES
from dotphase.theory.dimension import is_known
from dotphase.theory.settings import SolverFields, with_changes
from dotphase.theory.solve import solve_many

R = TypeVar("R", bound=Runs)

#: What theory and runs have in common.
COMPARED = ("train_loss", "test_error", "m", "theta", "q", "linear_test_error")


def with_theory(trained: R, **changes: Unpack[SolverFields]) -> R:
    """Runs with the numbers of the theory beside their means, in print and in `to_dict`.

    Every mechanism that was found is looked up: the branch of its name at the same alpha, with
    the known terms of order 1/d of the losses (`dotphase.results.Solution.at`). One that the theory
    does not have there is left out.

    Parameters
    ----------
    trained : Training or MessagePassing
        From `dotphase.train` or `dotphase.amp`.
    **changes
        As for `dotphase.solve`; as coarse as a curve by default.

    Examples
    --------
    >>> runs = dp.train(dp.positional_semantic(), alpha=2.0, d=40, seeds=2, start="semantic")
    >>> beside = dp.analysis.with_theory(runs, log2_points=12)
    >>> sorted(beside.theory["semantic"])
    ['linear_test_error', 'm', 'q', 'test_error', 'theta', 'train_loss']
    """
    model = trained.model
    if not is_known(model):
        rule = "must be of a model whose terms of order 1/d are known"
        raise InvalidInput("trained", model, rule)
    problems = [(model, trained.alpha, name) for name in trained.mechanisms if name in BRANCHES]
    found = {}
    for solution in solve_many(problems, settings=with_changes(None, SETTINGS, changes)):
        if solution.there:
            finite = solution.at(trained.d)
            found[solution.branch] = {name: finite.value(name) for name in COMPARED}
    return trained.beside(found)
