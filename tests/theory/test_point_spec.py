"""The specification of a point to solve."""

from dotphase.model.linear_layer import linear_test_error
from dotphase.theory.point_spec import PointSpec
from dotphase.theory.settings import SolverSettings


def test_a_specification_has_the_error_of_the_linear_layer(paper):
    spec = PointSpec.of(paper, 1.8, "semantic", SolverSettings(seed=3))
    assert spec.linear_test_error == linear_test_error(paper, seed=3)
