"""A single fixed point: located, refined and classified."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dotphase as dp
from dotphase.numerics.fixed_point import FixedPoint
from dotphase.numerics.outcome import Outcome
from dotphase.theory.branches import BRANCHES
from dotphase.theory.fixed_point_map import StateEvolutionMap
from dotphase.theory.locate import Located, locate
from dotphase.theory.point_evaluator import PointEvaluator, ProxWarmStart
from dotphase.theory.point_spec import PointSpec
from dotphase.theory.settings import SolverSettings
from dotphase.theory.solve_point import measure_stability, refine, solve_point

SETTINGS = SolverSettings(log2_points=12)


def test_points_grow_until_the_tolerance_is_met_or_the_cap_says_so(paper):
    loose = dp.solve(paper, 2.0, "semantic", rtol=2e-2)
    tight = dp.solve(paper, 2.0, "semantic", rtol=2e-3)
    capped = dp.solve(paper, 2.0, "semantic", rtol=1e-6, max_log2_points=14)
    assert loose.log2_points == 14 < tight.log2_points
    values = {name: tight.value(name) for name in tight.stderr}
    assert all(tight.stderr[k] <= 2e-3 * values[k] for k in values if values[k] > 0)
    assert capped.log2_points == 14
    assert "above rtol" in capped.message and "above rtol" not in tight.message


def test_a_place_that_is_no_minimum_is_left_soon():
    """It is not worked out with a long iteration on many points before the branch is looked for:
    with uneven positions a weak look-alike lies on the way to the positional branch."""
    fixed = jnp.array([[0.7, 0.3], [0.2, 0.8]])
    model = dp.positional_semantic().replace(
        teacher=lambda h: 0.6 * jax.nn.softmax(2 * h @ h.T, axis=-1) + 0.4 * fixed
    )
    found = dp.solve(model, 2.0, "positional")
    assert (found.found, found.stability.kind) == ("positional", "minimum")
    assert found.norms["m"] == pytest.approx(0.44040, abs=3e-4)
    assert found.log2_points <= 18 and found.iterations < 50


def initial_of(model):
    return BRANCHES["semantic"].initial_overlaps(model)


def test_a_solve_is_its_three_steps(paper):
    spec, initial = PointSpec.of(paper, 1.8, "semantic", SETTINGS), initial_of(paper)
    solved = solve_point(spec, initial, ProxWarmStart())
    fixed_point_map = StateEvolutionMap.from_initial(paper, 1.8, initial)
    located = locate(spec, PointEvaluator(fixed_point_map, SETTINGS, ProxWarmStart()), initial)
    refined = refine(located)
    classified = measure_stability(refined)
    assert refined.converged and located.log2_points == 12
    assert refined.evaluated.train_loss == solved.solution.train_loss
    assert classified.multipliers.kind == solved.solution.stability.kind == "minimum"
    np.testing.assert_array_equal(classified.jacobian.matrix, solved.jacobian.matrix)


def test_a_neighbor_saves_evaluations_and_its_averages_predict_the_point(paper):
    initial = initial_of(paper)
    first = solve_point(PointSpec.of(paper, 1.8, "semantic", SETTINGS), initial, ProxWarmStart())
    spec = PointSpec.of(paper, 1.78, "semantic", SETTINGS)
    alone = solve_point(spec, initial, ProxWarmStart()).solution
    tracked = solve_point(spec, first.solution.overlaps, ProxWarmStart(), first).solution
    target = StateEvolutionMap.from_initial(paper, 1.78, first.solution.overlaps)
    solved = target.coordinates.pack(alone.overlaps)
    distances = [
        np.max(np.abs(x - solved) / target.scale(solved))
        for x in (first.predict(target), first.evaluated.x)
    ]
    assert distances[0] < distances[1] / 5
    assert tracked.iterations < alone.iterations / 2
    np.testing.assert_allclose(tracked.train_loss, alone.train_loss, rtol=2e-4)
    assert tracked.stability.kind == alone.stability.kind


def test_without_a_fixed_point_nothing_is_classified(paper):
    fixed_point_map = StateEvolutionMap.from_initial(paper, 1.8, initial_of(paper))
    evaluator = PointEvaluator(fixed_point_map, SETTINGS, ProxWarmStart())
    x = fixed_point_map.coordinates.pack(initial_of(paper))
    refined = refine(Located(evaluator, FixedPoint(x, x, 1.0, 1, Outcome.CYCLE), 12, 12))
    classified = measure_stability(refined)
    assert not refined.converged and evaluator.n_evaluations == 1
    assert classified.responses is None and classified.multipliers.kind == "unknown"
