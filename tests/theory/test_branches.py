"""The registry of branches, their initializations, and the branch of a fixed point."""

import subprocess
import sys

import numpy as np
import pytest

import dotphase as dp
from dotphase.theory.branch import Branch, aligned_overlaps
from dotphase.theory.branches import BRANCHES
from dotphase.theory.classification import matches_branch


@pytest.fixture
def strong():
    """A registered branch: positional, from an initialization with larger means."""

    def initial_overlaps(model):
        overlaps = aligned_overlaps(model, positional=0)
        return overlaps._replace(m=1.5 * overlaps.m)

    BRANCHES.register(
        "strong", Branch(initial_overlaps, frozenset({"theta"}), continue_upwards=True)
    )
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
    assert not matches_branch("strong", "positional")


def test_names_are_known_without_jax():
    code = "import sys; from dotphase.theory.branches import BRANCHES; print(*BRANCHES); "
    code += "sys.exit('jax' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.split() == list(BRANCHES)
