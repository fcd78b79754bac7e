"""Branches: one list for solver, curves and names; which one a fixed point belongs to."""

import subprocess
import sys

import numpy as np
import pytest

import dotphase as dp
from dotphase.numerics.fixed_point import FixedPoint
from dotphase.numerics.outcome import Outcome
from dotphase.theory.branch import Branch, aligned
from dotphase.theory.branches import BRANCHES
from dotphase.theory.classification import belongs, classify
from dotphase.theory.continuation import _without_traces
from dotphase.theory.fixed_point_map import Free


@pytest.mark.parametrize("branch", ["semantic", "positional", "uninformed", "mixed"])
def test_every_start_is_on_its_branch(paper, branch):
    assert classify(paper, BRANCHES[branch].start(paper)) == branch


def test_mixed_columns_of_a_student_of_rank_two():
    start = BRANCHES["mixed"].start(dp.positional_semantic(student_rank=2))
    assert np.all(start.theta[:, 0] > 0) and np.all(start.theta[:, 1] == 0)
    assert np.all(start.m[:, 0] == 0) and np.all(start.m[:, 1] != 0)


@pytest.mark.parametrize(
    ("aligned", "left", "cleared"),
    [(0.01, 0.7, True), (0.01, 1.0, False), (0.5, 0.7, False), (0.0, 0.0, False)],
)
def test_what_is_dying_out_is_cleared(paper, aligned, left, cleared):
    """Small and smaller after a step: a trace. Small and as large as before: a weak branch."""
    start = BRANCHES["semantic"].start(paper)
    size = aligned * np.sqrt(np.asarray(start.q)[0, 0, 0] * np.asarray(paper.rho)[0])
    start = start._replace(theta=np.full_like(start.theta, size))
    problem = Free.started(paper, 1.0, start)
    x = problem.coordinates.pack(start)
    image = np.where(problem.coordinates.part("theta"), left * x, x)
    found = _without_traces(problem, FixedPoint(x, image, 1e-3, 1, Outcome.CONVERGED))
    assert (found is not None) == cleared
    if found is not None:
        other, y = found
        theta = problem.coordinates.part("theta")
        assert np.all(y[theta] == 0) and np.all(other.held[theta])
        np.testing.assert_array_equal(y[~theta], x[~theta])


@pytest.fixture
def strong():
    """A branch of one's own: positional, from a start with larger means."""

    def start(model):
        overlaps = aligned(model, positional=0)
        return overlaps._replace(m=1.5 * overlaps.m)

    BRANCHES.register("strong", Branch(start, frozenset({"theta"}), from_few=True))
    yield "strong"
    BRANCHES.unregister("strong")


def test_a_registered_branch_is_found_by_solve_and_curve(paper, strong):
    known = dp.solve(paper, 1.5, "positional", log2_points=12)
    mine = dp.solve(paper, 1.5, strong, log2_points=12)
    assert (mine.branch, mine.found) == (strong, "positional")
    assert mine.on_branch
    assert mine.norms["m"] == pytest.approx(known.norms["m"], rel=1e-3)
    curve = dp.curve(paper, [1.5, 1.4], [strong, "positional"], log2_points=12)
    assert curve["on_branch"].all()
    np.testing.assert_allclose(*curve["m"].values, rtol=1e-3)


def test_a_branch_that_nobody_registered_is_refused(paper):
    with pytest.raises(dp.InvalidInput, match="must be one of semantic, positional, uninformed"):
        dp.solve(paper, 1.5, "strong")
    assert not belongs("strong", "positional")


def test_names_are_known_without_jax():
    code = "import sys; from dotphase.theory.branches import BRANCHES; print(*BRANCHES); "
    code += "sys.exit('jax' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.split() == list(BRANCHES)
