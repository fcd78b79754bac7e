"""Evaluations of a map: warm starts, counts and the latest point."""

import numpy as np

from dotphase.numerics.fixed_point import Iteration
from dotphase.theory.point_evaluator import ProxWarmStart
from linear_map import evaluator_of, linear_map


def test_states_come_from_the_largest_stored_prefix():
    warm_start = ProxWarmStart({12: ("few",), 14: ("many",)})
    assert warm_start.states(11) == ()
    assert warm_start.states(12) == warm_start.states(13) == ("few",)
    assert warm_start.states(14) == warm_start.states(20) == ("many",)
    assert warm_start.max_log2_points == 14
    assert ProxWarmStart().max_log2_points == 0


def test_a_neighbor_starts_from_the_states_and_counts_its_own_calls():
    warm_start = ProxWarmStart()
    warm_start.update(12, ("first",))
    warm_start.update(12, ("second",))
    assert (warm_start.calls(12), warm_start.calls(13)) == (2, 0)
    neighbor = warm_start.for_neighbor()
    assert neighbor.states(12) == ("second",) and neighbor.calls(12) == 0
    neighbor.update(12, ("third",))
    assert warm_start.states(12) == ("second",) and warm_start.calls(12) == 2


def test_evaluations_are_counted_and_warm_started():
    fixed_point_map = linear_map()
    evaluator = evaluator_of(fixed_point_map)
    for step in range(3):
        evaluator.evaluate(fixed_point_map.target + step, 12)
    evaluator.evaluate(fixed_point_map.target, 13)
    assert evaluator.n_evaluations == 4
    assert fixed_point_map.evaluator.calls == [
        (12, (), 0),
        (12, ("states 1",), 1),
        (12, ("states 2",), 2),
        (13, ("states 3",), 0),
    ]


def test_the_latest_point_of_each_number_of_points_is_not_evaluated_again():
    fixed_point_map = linear_map()
    evaluator, x = evaluator_of(fixed_point_map), fixed_point_map.target
    coarse, fine = evaluator.evaluate(x, 12), evaluator.evaluate(x, 13)
    assert evaluator.evaluate(x.copy(), 12) is coarse
    assert evaluator.evaluate(x.copy(), 13) is fine
    assert evaluator.n_evaluations == 2
    evaluator.evaluate(x + 1, 12)
    assert evaluator.evaluate(x, 12) is not coarse
    assert evaluator.n_evaluations == 4


def test_an_evaluated_point_has_images_and_values_of_its_averages():
    fixed_point_map = linear_map()
    x = fixed_point_map.target + 0.1
    point = evaluator_of(fixed_point_map).evaluate(x, 12)
    np.testing.assert_allclose(
        point.image, fixed_point_map.target + fixed_point_map.matrix @ (x - fixed_point_map.target)
    )
    assert point.images.shape == fixed_point_map.offsets.shape
    spread = fixed_point_map.offsets @ fixed_point_map.matrix.T
    np.testing.assert_allclose(point.images - point.image, spread, atol=1e-12)
    assert point.train_loss == point.free_energy == 2 * point.test_error
    assert point.is_finite


def test_the_first_point_that_is_not_finite_is_remembered():
    fixed_point_map = linear_map()
    evaluator = evaluator_of(fixed_point_map)
    evaluator.evaluate(fixed_point_map.target, 12)
    assert evaluator.first_nonfinite is None
    first = evaluator.evaluate(np.full(3, np.nan), 12)
    evaluator.evaluate(np.full(3, np.inf), 12)
    assert evaluator.first_nonfinite is first


def test_an_iteration_converges_to_the_fixed_point():
    fixed_point_map = linear_map((0.5, 0.2, -0.4))
    evaluator = evaluator_of(fixed_point_map)
    point = evaluator.iterate(fixed_point_map.target + 0.3, 12, Iteration(tolerance=1e-8))
    assert point.outcome.success
    np.testing.assert_allclose(point.x, fixed_point_map.target, atol=1e-7)
    assert point.iterations == evaluator.n_evaluations
