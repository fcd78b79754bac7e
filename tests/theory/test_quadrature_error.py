"""Standard errors of a fixed point, from the spread of its scrambles."""

import math

import numpy as np
import pytest

import dotphase as dp
from dotphase.theory.branches import BRANCHES
from dotphase.theory.fixed_point_map import StateEvolutionMap
from dotphase.theory.newton import measure_jacobian
from dotphase.theory.point_evaluator import PointEvaluator, ProxWarmStart
from dotphase.theory.quadrature_error import (
    MAX_INCREASE,
    largest_relative_error,
    required_log2_points,
    scramble_values,
    standard_errors,
)
from dotphase.theory.settings import SolverSettings
from linear_map import evaluator_of, linear_map

VALUES = ("q", "V", "theta", "train_loss", "test_error")


def test_values_are_those_at_the_fixed_point_of_each_scramble():
    fixed_point_map = linear_map((0.5, -3.0, 0.9))
    evaluator, target = evaluator_of(fixed_point_map), fixed_point_map.target
    jacobian = measure_jacobian(evaluator, target, 12)
    values = scramble_values(evaluator.evaluate(target, 12), jacobian)
    # x = target + A (x + offset - target) for each offset.
    A, offsets = fixed_point_map.matrix, fixed_point_map.offsets
    shifts = np.linalg.solve(np.eye(3) - A, A @ offsets.T).T
    np.testing.assert_allclose(values["first"], (target + shifts)[:, 0], rtol=1e-9)
    moved = target + shifts + offsets
    np.testing.assert_allclose(values["test_error"], moved @ fixed_point_map.gradient, rtol=1e-9)
    # The free energy is taken as stationary: it does not move with the fixed point.
    expected = 2 * (target + offsets) @ fixed_point_map.gradient
    np.testing.assert_allclose(values["train_loss"], expected, rtol=1e-9)


def test_the_standard_error_is_that_of_the_mean(rng):
    samples = rng.normal(size=(20_000, 8))
    errors = standard_errors(dict(enumerate(samples)))
    covered = [abs(np.mean(sample)) < errors[index] for index, sample in enumerate(samples)]
    assert np.mean(covered) == pytest.approx(0.683, abs=0.01)


def test_more_points_are_required_for_larger_errors_up_to_a_cap():
    settings = SolverSettings(rtol=1e-3, max_log2_points=18)
    errors = np.geomspace(1e-5, 10, 60)
    required = [required_log2_points(error, 14, settings) for error in errors]
    assert np.all(np.diff(required) >= 0)
    assert required[0] < 14 and required[-1] == min(14 + MAX_INCREASE, 18)
    assert required_log2_points(math.inf, 17, settings) == 18
    assert required_log2_points(1.0, 12, settings) == 12 + MAX_INCREASE
    assert required_log2_points(0.0, 14, settings) <= required[0]


def test_standard_errors_cover_the_spread_between_seeds(paper):
    solutions = [dp.solve(paper, 2.0, "semantic", log2_points=12, seed=seed) for seed in range(8)]
    fine = dp.solve(paper, 2.0, "semantic", log2_points=16)
    for name in VALUES:
        scores = [
            (s.value(name) - fine.value(name)) / math.hypot(s.stderr[name], fine.stderr[name])
            for s in solutions
        ]
        assert 0.3 < np.sqrt(np.mean(np.square(scores))) < 2.5, name


def test_results_that_vanish_by_symmetry_do_not_count(paper):
    initial = BRANCHES["semantic"].initial_overlaps(paper)
    fixed_point_map = StateEvolutionMap.from_initial(paper, 1.5, initial)
    evaluator = PointEvaluator(fixed_point_map, SolverSettings(), ProxWarmStart())
    point = evaluator.evaluate(fixed_point_map.coordinates.pack(initial), 12)
    stderr = dict.fromkeys((*fixed_point_map.norms(point.x), "train_loss", "test_error"), 0.0)
    assert largest_relative_error(point, stderr | {"m": 1.0}) == 0
    theta = fixed_point_map.norms(point.x)["theta"]
    assert largest_relative_error(point, stderr | {"theta": 0.1}) == pytest.approx(0.1 / theta)
    assert largest_relative_error(point, stderr | {"V": math.nan}) == math.inf
