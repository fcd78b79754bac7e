"""Minimum or saddle: multipliers against one step, against the landscape, and their verdicts."""

import numpy as np
import pytest

import dotphase as dp
from dotphase.model.symmetry import rotation_symmetries
from dotphase.theory.fixed_point_map import StateEvolutionMap
from dotphase.theory.multipliers import measure_multipliers
from dotphase.theory.point_evaluator import PointEvaluator, ProxWarmStart
from dotphase.theory.settings import SolverSettings
from models import softmax


@pytest.fixture(scope="module")
def solved(paper):
    alphas = {"semantic": 2.0, "positional": 2.0, "uninformed": 1.0}
    return {name: dp.solve(paper, alpha, name, log2_points=14) for name, alpha in alphas.items()}


def test_the_minima_are_minima_and_the_uninformed_point_is_a_saddle(solved):
    assert solved["semantic"].stability.kind == "minimum"
    assert solved["positional"].stability.kind == "minimum"
    verdict = solved["uninformed"].stability
    assert verdict.kind == "saddle"
    assert verdict.described == "saddle (towards semantic, positional)"
    assert not verdict.trusted
    assert not solved["uninformed"].is_minimum
    assert solved["uninformed"].on_branch
    assert "saddle" in str(solved["uninformed"])


def test_json_has_kind_and_multipliers(solved):
    stability = solved["positional"].to_dict()["stability"]
    assert stability["kind"] == "minimum"
    assert set(stability["multipliers"]) == set(stability["multipliers_stderr"]) == {"theta", "m"}


def test_a_fixed_direction_is_multiplied_as_one_step_does(solved, paper):
    """A change of m on the semantic branch, where next to nothing jumps."""
    solution = solved["semantic"]
    fixed_point_map = StateEvolutionMap.from_initial(
        paper, solution.alpha, solution.overlaps
    ).unconstrained
    x = fixed_point_map.coordinates.pack(solution.overlaps)
    index = np.flatnonzero(fixed_point_map.coordinates.part("m"))[0]
    x[index] = 0.02 * fixed_point_map.scale(x)[index]
    evaluator = PointEvaluator(fixed_point_map, SolverSettings(log2_points=14), ProxWarmStart())
    ratio = evaluator.evaluate(x, 14).image[index] / x[index]
    verdict = solution.stability
    error = 3 * verdict.multipliers_stderr["m"] + 0.02 * abs(ratio)
    assert abs(verdict.multipliers["m"] - ratio) < error
    assert ratio < -1  # it oscillates, and is a minimum all the same


def test_the_curvature_of_the_landscape_says_the_same(solved, paper):
    """``df/dtheta = (t/R)(1 - M)/rho`` for a small theta at the positional point."""
    solution = solved["positional"]
    rho = float(paper.rho[0])
    theta = 0.2 * rho * np.sqrt(solution.norms["q"] / rho)
    surface = dp.analysis.landscape(paper, 2.0, [solution.norms["m"]], [theta], log2_points=14)
    response, t = surface.V[0, 0] / rho, theta / rho
    from_slope = 1 - surface.slope_theta[0, 0] * rho * response / t
    verdict = solution.stability
    assert abs(verdict.multipliers["theta"] - from_slope) < (
        3 * verdict.multipliers_stderr["theta"] + 0.06
    )
    assert surface.trusted.shape == surface.loss.shape
    assert 0 < surface.jump_weight[0, 0] < 1


@pytest.mark.parametrize(("alpha", "kind"), [(0.5, "minimum"), (1.4, "saddle")])
def test_three_tokens_lose_the_positional_minimum(alpha, kind):
    model = dp.positional_semantic_length(3, omega=0.3)
    verdict = dp.solve(model, alpha, "positional", log2_points=14).stability
    assert verdict.kind == kind
    assert verdict.towards == (("semantic",) if kind == "saddle" else ())
    assert 0 < verdict.multipliers_stderr["theta"] < 0.1


def test_two_columns_are_saddles_unless_each_has_its_own_mechanism():
    model = dp.positional_semantic(omega=0.3, student_rank=2)
    kinds = {
        name: dp.solve(model, 1.5, name, log2_points=12).stability
        for name in ("semantic", "positional", "mixed")
    }
    assert kinds["semantic"].towards == ("positional",)
    assert kinds["positional"].towards == ("semantic",)
    # Turning the columns into each other changes nothing: that multiplier, one, is left out.
    assert kinds["mixed"].kind == "minimum"


def test_a_rotation_of_columns_is_left_out_of_the_multipliers():
    model = dp.positional_semantic(omega=0.3, student_rank=2)
    overlaps = dp.solve(model, 1.5, "mixed", log2_points=12).overlaps
    fixed_point_map = StateEvolutionMap.from_initial(model, 1.5, overlaps)
    x = fixed_point_map.coordinates.pack(overlaps)
    (rotation,) = fixed_point_map.coordinates.rotations(x)
    assert np.any(rotation[fixed_point_map.fixed])
    np.testing.assert_array_equal(rotation[~fixed_point_map.fixed], 0)
    jacobian = np.outer(rotation, rotation) / (rotation @ rotation)
    multipliers = measure_multipliers(fixed_point_map, x, np.repeat(jacobian[None], 8, axis=0))
    assert max(multipliers.value.values()) < 1e-9  # the rotation alone had the eigenvalue one


def test_turns_are_seen_by_functions_that_tell_columns_apart():
    assert len(rotation_symmetries(softmax, 2, 3)) == 3
    assert rotation_symmetries(lambda h: softmax(h[:, :1]), 2, 2) == []
