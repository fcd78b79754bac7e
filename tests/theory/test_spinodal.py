"""Ends of branches: bifurcations, folds, loss of trust."""

import numpy as np
import pytest

import dotphase as dp
from dotphase.runtime.precision import in_double_precision
from dotphase.theory.continuation import BranchContinuation
from dotphase.theory.settings import SolverSettings
from dotphase.theory.spinodal import BranchEnd, branch_limits


@pytest.fixture(scope="module")
def semantic_end(paper):
    return dp.analysis.branch_end(paper, "semantic", 1.2, 0.4, log2_points=14)


def test_the_semantic_branch_merges_with_the_uninformed_one(semantic_end):
    """There one step multiplies theta by one: .715 ± .003 on 2^18 points."""
    assert isinstance(semantic_end, BranchEnd)
    assert semantic_end.kind == "merges with uninformed"
    assert 0 < semantic_end.stderr < 0.06
    assert abs(semantic_end.alpha - 0.715) < 3 * semantic_end.stderr


def test_the_branch_exists_above_its_end_only(paper, semantic_end):
    alphas = [semantic_end.alpha + sign * 0.12 for sign in (1, -1)]
    above, below = (dp.solve(paper, alpha, "semantic", log2_points=14) for alpha in alphas)
    assert above.on_branch and above.norms["theta"] > 0.03
    assert not below.on_branch


def test_a_branch_that_jumps_ends_at_a_fold():
    """With little ridge theta jumps, at .857 ± .006 on 2^16 points."""
    model = dp.positional_semantic(sigma=1.0, ridge=0.001)
    end = dp.analysis.branch_end(model, "semantic", 1.2, 0.7, log2_points=14)
    assert end.kind == "fold"
    assert 0 < end.stderr < 0.05
    assert abs(end.alpha - 0.857) < 3 * end.stderr
    parent = dp.solve(model, end.alpha, "uninformed", log2_points=14)
    assert parent.stability.multipliers["theta"] < 1


def test_an_alpha_without_the_branch_is_refused(paper):
    for trusted in (False, True):
        with pytest.raises(dp.InvalidInput, match=r"^inside = 0.2: must be on the semantic branch"):
            dp.analysis.branch_end(paper, "semantic", 0.2, 0.1, trusted=trusted, log2_points=12)


def test_no_end_between_two_alphas_on_the_branch(paper):
    assert dp.analysis.branch_end(paper, "semantic", 1.6, 1.4, log2_points=12) is None


def test_trust_is_lost_before_the_branch_ends(paper, semantic_end):
    end = dp.analysis.branch_end(paper, "semantic", 1.5, 0.6, trusted=True, log2_points=14)
    assert end.kind == "loss of trust"
    assert semantic_end.alpha < 0.85 < end.alpha < 1.2
    assert end.stderr < 0.01 * end.alpha
    assert dp.analysis.branch_end(paper, "semantic", 2.0, 1.8, trusted=True, log2_points=12) is None


def test_the_positional_branch_ends_towards_many_samples():
    """At omega = .1, m vanishes at 1.291 ± .004 on 2^18 points."""
    model = dp.positional_semantic(omega=0.1)
    settings = SolverSettings(log2_points=14)

    def start(name, alpha):
        return BranchContinuation(model, name, settings)

    with np.errstate(all="ignore"):
        limits = in_double_precision(branch_limits)(start, "positional", 0.9, 1.6, settings)
    assert limits.end_kind == "merges with uninformed"
    assert abs(limits.end - 1.291) < 3 * limits.end_stderr
    assert 0.95 < limits.stability_loss < limits.end
