"""The plane of Q* and p_1."""

import numpy as np
import pytest

import dotphase as dp
from dotphase.theory.plane import Plane


def test_positions_of_rank_one_are_multiples_of_the_first():
    model = dp.positional_semantic(sigma=0.7).replace(positions=[[4.0, -2.0], [-2.0, 1.0]])
    plane = Plane.of(model)
    assert plane.rho == pytest.approx(0.49) and plane.length == 4
    np.testing.assert_allclose(plane.pattern, [1.0, -0.5])
    # Q = t Q* + (m/P_11) sqrt(d) p_1
    assert plane.weight(0.3, 0.5) == pytest.approx(0.5**2 + 0.3**2 / 4)


@pytest.mark.parametrize(
    ("model", "field"),
    [
        (dp.positional_semantic(student_rank=2), "ranks of student and teacher"),
        (dp.positional_semantic_length(3, kinds=3), "positions"),
        (dp.scalar_link(lambda h: h, lambda h: h), "positions"),
        (dp.load_model("correlated-attention"), "correlation"),
    ],
)
def test_other_models_have_no_such_plane(model, field):
    with pytest.raises(dp.InvalidInput) as caught:
        Plane.of(model)
    assert caught.value.field == field
