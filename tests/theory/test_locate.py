"""Locating a fixed point: rescaled initializations, decaying overlaps, neighbors."""

import numpy as np
import pytest

import dotphase as dp
from dotphase.numerics.fixed_point import FixedPoint
from dotphase.numerics.outcome import Outcome
from dotphase.theory.branches import BRANCHES
from dotphase.theory.fixed_point_map import StateEvolutionMap
from dotphase.theory.locate import _clear_decaying
from dotphase.theory.point_evaluator import PointEvaluator, ProxWarmStart
from dotphase.theory.settings import SolverSettings


@pytest.mark.parametrize(
    ("alignment", "factor", "cleared"),
    [(0.01, 0.7, True), (0.01, 1.0, False), (0.5, 0.7, False), (0.0, 0.0, False)],
)
def test_a_small_overlap_that_shrinks_is_fixed_at_zero(paper, alignment, factor, cleared):
    """A small overlap that one step preserves belongs to a weak branch, and stays."""
    initial = BRANCHES["semantic"].initial_overlaps(paper)
    size = alignment * np.sqrt(np.asarray(initial.q)[0, 0, 0] * np.asarray(paper.rho)[0])
    initial = initial._replace(theta=np.full_like(initial.theta, size))
    fixed_point_map = StateEvolutionMap.from_initial(paper, 1.0, initial)
    evaluator = PointEvaluator(fixed_point_map, SolverSettings(), ProxWarmStart(), 7)
    x, theta = fixed_point_map.coordinates.pack(initial), fixed_point_map.coordinates.part("theta")
    point = FixedPoint(x, np.where(theta, factor * x, x), 1e-3, 1, Outcome.CONVERGED)
    symmetric, cleared_point = _clear_decaying(evaluator, point)
    assert (symmetric is not evaluator) == cleared
    assert (cleared_point is not point) == cleared
    if cleared:
        assert np.all(cleared_point.x[theta] == 0) and np.all(symmetric.map.fixed[theta])
        np.testing.assert_array_equal(cleared_point.x[~theta], x[~theta])
        assert symmetric.n_evaluations == 7


@pytest.mark.parametrize(
    ("branch", "omega", "size"), [("positional", 0.9, 1.16), ("semantic", 0.5, 0.3)]
)
def test_an_initialization_that_leaves_the_admissible_overlaps_is_rescaled(
    branch, omega, size, monkeypatch
):
    model = dp.positional_semantic(omega=omega, ridge=0.02, mixing=[[0.9, 0.1], [0.1, 0.9]])
    solution = dp.solve(model, 10.0, start=branch, log2_points=12)
    assert solution.on_branch
    assert solution.value("m" if branch == "positional" else "theta") == pytest.approx(
        size, rel=0.02
    )
    monkeypatch.setattr("dotphase.theory.locate.RESCALINGS", ())
    lost = dp.solve(model, 10.0, start=branch, log2_points=12)
    assert not lost.converged
    assert str(lost).startswith(f"NO RESULT for the {branch} branch")
