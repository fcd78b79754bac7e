import numpy as np
import pytest

import dotphase as dp
from dotphase.derivatives import by_autodiff, differentiate, loss_derivatives


@pytest.mark.parametrize("scale", [0.1, 1.0, 8.0])
def test_closed_form_equals_autodiff(scale, rng):
    model = dp.Model(
        teacher=dp.softmax_attention,
        student=dp.softmax_attention,
        length=2,
        sigma=[0.5, 0.8],
        positions=np.eye(2),
    )
    closed, automatic = loss_derivatives(model), by_autodiff(model)
    for _ in range(10):
        x, target = rng.normal(size=2) * scale, rng.normal(size=(2, 2))
        for one, other in zip(closed(x, target), automatic(x, target), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_closed_form_is_used_for_the_paper_only(paper):
    assert loss_derivatives(paper).__closure__[0].cell_contents.__name__ == "two_token_softmax"
    rank_two = dp.positional_semantic(student_rank=2)
    assert "by_autodiff" in loss_derivatives(rank_two).__qualname__


def test_differentiate_a_known_function(rng):
    matrix = rng.normal(size=(3, 3))
    matrix = matrix + matrix.T
    x = rng.normal(size=3)
    found = differentiate(lambda z: 0.5 * z @ matrix @ z + z[0] ** 3, x)
    curvature = matrix + np.diag([6 * x[0], 0, 0])
    np.testing.assert_allclose(found.value, 0.5 * x @ matrix @ x + x[0] ** 3)
    np.testing.assert_allclose(found.gradient, matrix @ x + [3 * x[0] ** 2, 0, 0])
    np.testing.assert_allclose(found.hessian, curvature)
