"""Newton steps and measured Jacobians, on a map with a known Jacobian."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from dotphase.numerics.outcome import Outcome
from dotphase.numerics.proximal_map import SEARCH_ALL
from dotphase.theory.newton import (
    DIFFERENCE_STEP,
    MAX_FAILURES,
    Jacobian,
    finite_differences,
    measure_jacobian,
    newton,
    newton_or_iterate,
    single_newton_step,
)
from linear_map import LinearMap, NoisyIdentity, evaluator_of, linear_map


def exact(fixed_point_map):
    size = fixed_point_map.target.size
    return Jacobian.from_matrix(np.arange(size), fixed_point_map.matrix, fixed_point_map.gradient)


def test_the_measured_jacobian_is_that_of_the_map():
    fixed_point_map = linear_map()
    jacobian = measure_jacobian(evaluator_of(fixed_point_map), fixed_point_map.target + 0.1, 12)
    np.testing.assert_allclose(jacobian.matrix, fixed_point_map.matrix, atol=1e-12)
    np.testing.assert_allclose(jacobian.test_gradient, fixed_point_map.gradient, atol=1e-12)


def test_fixed_coordinates_have_no_derivatives():
    fixed_point_map = linear_map(fixed=(1,))
    evaluator = evaluator_of(fixed_point_map)
    jacobian = measure_jacobian(evaluator, fixed_point_map.target + 0.1, 12)
    np.testing.assert_array_equal(jacobian.free, [0, 2])
    block = fixed_point_map.matrix[np.ix_([0, 2], [0, 2])]
    np.testing.assert_allclose(jacobian.matrix, block, atol=1e-12)
    assert evaluator.n_evaluations == 3
    np.testing.assert_array_equal(jacobian.newton_step(np.ones(3))[1], 0)


def test_differences_stay_inside_the_domain():
    fixed_point_map = linear_map(bound=3.0)
    evaluator = evaluator_of(fixed_point_map)
    # The third coordinate lies at the bound: only its backward difference is admissible.
    columns, _ = finite_differences(evaluator, fixed_point_map.target, 12, np.arange(3))
    np.testing.assert_allclose(columns, fixed_point_map.matrix, atol=1e-12)
    outside = fixed_point_map.target + np.array([0.0, 0.0, 2 * DIFFERENCE_STEP])
    assert finite_differences(evaluator, outside, 12, np.arange(3)) is None
    assert measure_jacobian(evaluator, outside, 12) is None


@pytest.mark.parametrize("matrix", [np.eye(2), [[np.nan, 0.0], [0.0, 0.0]]])
def test_a_map_without_an_inverse_has_no_jacobian(matrix):
    assert Jacobian.from_matrix(np.arange(2), np.asarray(matrix), np.zeros(2)) is None


@pytest.mark.parametrize(
    ("eigenvalues", "attracts"), [((0.5, -5.0), True), ((0.5, 1.1), False), ((0.9, 0.2), True)]
)
def test_eigenvalues_above_one_repel(eigenvalues, attracts):
    assert exact(linear_map(eigenvalues)).attracts is attracts


def test_one_step_solves_a_linear_map_and_rows_are_separate_residuals():
    fixed_point_map = linear_map((0.5, 1.4))
    x = fixed_point_map.target + np.array([[0.1, 0.05], [-0.02, 0.1]])
    residual = fixed_point_map.target + (x - fixed_point_map.target) @ fixed_point_map.matrix.T - x
    step = exact(fixed_point_map).newton_step(residual)
    np.testing.assert_allclose(x + step, [fixed_point_map.target] * 2, atol=1e-12)


def test_newton_converges_also_where_the_iteration_would_not():
    fixed_point_map = linear_map((0.5, -3.0, 1.4))
    evaluator = evaluator_of(fixed_point_map)
    point, _ = newton(evaluator, fixed_point_map.target + 0.05, 12, exact(fixed_point_map))
    assert point.outcome is Outcome.CONVERGED
    np.testing.assert_allclose(point.x, fixed_point_map.target, atol=1e-9)
    assert point.iterations == evaluator.n_evaluations == 2


def test_long_steps_are_shortened():
    fixed_point_map = linear_map((0.5, 0.3, 0.1))
    evaluator = evaluator_of(fixed_point_map)
    x = fixed_point_map.target + np.array([1.0, 0.0, 0.0])
    point, _ = newton(evaluator, x, 12, exact(fixed_point_map))
    assert point.outcome.success
    assert point.iterations == 6  # five steps of 0.2, and the last evaluation


def test_broyden_updates_correct_a_wrong_jacobian():
    fixed_point_map = linear_map((0.5, -0.6, 0.3))
    wrong = Jacobian(np.arange(3), np.eye(3), np.zeros(3))
    step = np.array([0.1, -0.2, 0.05])
    change = fixed_point_map.matrix @ step - step
    corrected = wrong.broyden_update(step, change, np.ones(3))
    np.testing.assert_allclose(corrected.inverse @ -change, step, atol=1e-12)  # secant condition
    evaluator = evaluator_of(fixed_point_map)
    point, jacobian = newton(evaluator, fixed_point_map.target + 0.05, 12, wrong)
    assert point.outcome.success
    distances = [np.linalg.norm(each.matrix - fixed_point_map.matrix) for each in (wrong, jacobian)]
    assert distances[1] < 0.7 * distances[0]


class NoFixedPoint(LinearMap):
    """``F(x) = x + 1``."""

    def advance(self, x, averages):
        return averages[0] + 1.0


def test_newton_gives_up_without_progress():
    model = linear_map()
    no_fixed_point = NoFixedPoint(
        None, 1.0, model.matrix, model.target, model.gradient, model.offsets
    )
    evaluator = evaluator_of(no_fixed_point)
    x = model.target
    point, _ = newton(evaluator, x, 12, Jacobian(np.arange(3), np.eye(3), np.zeros(3)))
    assert point.outcome is Outcome.STEPS and point.residual == pytest.approx(1)
    assert point.x is x
    assert evaluator.n_evaluations == 1 + MAX_FAILURES


def test_a_single_step_is_skipped_on_points_that_were_used():
    fixed_point_map = linear_map()
    evaluator, jacobian = evaluator_of(fixed_point_map), exact(fixed_point_map)
    x = fixed_point_map.target + 0.02
    np.testing.assert_allclose(
        single_newton_step(evaluator, x, 13, jacobian), fixed_point_map.target, atol=1e-12
    )
    assert single_newton_step(evaluator, x, 13, jacobian) is x
    far = fixed_point_map.target + 1.0  # The step would be too long.
    assert single_newton_step(evaluator, far, 14, jacobian) is far


@pytest.mark.parametrize("known", [True, False])
def test_newton_steps_come_before_the_iteration(known):
    fixed_point_map = linear_map((0.5, -3.0, 0.9))
    evaluator = evaluator_of(fixed_point_map)
    jacobian = exact(fixed_point_map) if known else None
    point, jacobian = newton_or_iterate(evaluator, fixed_point_map.target + 0.05, 14, jacobian)
    assert point.outcome.success and jacobian is not None
    np.testing.assert_allclose(point.x, fixed_point_map.target, atol=1e-4)
    assert (12 in [log2_points for log2_points, _, _ in evaluator.map.evaluator.calls]) != known


def test_a_residual_that_does_not_fall_has_all_points_searched_once():
    """The map moves at each call as long as second minima turn up."""

    class Jumping(NoisyIdentity):
        def expectations(self, x, log2_points, seed, prox_states, call):
            found = super().expectations(x, log2_points, seed, prox_states, call)
            searched = any(made == SEARCH_ALL for _, _, made in self.calls)
            jump = 0.0 if searched else 0.1 * (-1.0) ** len(self.calls)
            state = SimpleNamespace(bistable=np.ones(4))
            return replace(found, mean=(x + jump,), prox_states=(state,))

    fixed_point_map = linear_map()
    object.__setattr__(fixed_point_map, "evaluator", Jumping(fixed_point_map.offsets))
    evaluator = evaluator_of(fixed_point_map)
    x = fixed_point_map.target + 0.1
    point, _ = newton(evaluator, x, 12, exact(fixed_point_map))
    assert point.outcome.success
    np.testing.assert_allclose(point.x, fixed_point_map.target, atol=2e-3)
    assert sum(call == SEARCH_ALL for _, _, call in fixed_point_map.evaluator.calls) == 1
