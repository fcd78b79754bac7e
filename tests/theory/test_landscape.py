"""The effective landscape: the branches are its stationary points."""

import numpy as np
import pytest

import dotphase as dp


@pytest.mark.parametrize("branch", ["semantic", "positional"])
def test_branches_are_stationary_points_with_the_same_loss(paper, branch):
    solution = dp.solve(paper, 1.5, branch, log2_points=14)
    m, theta = solution.norms["m"], solution.norms["theta"]
    at = dp.analysis.landscape(paper, 1.5, [m], [theta], log2_points=14)
    error = solution.stderr["train_loss"]
    assert abs(at.loss[0, 0] - solution.train_loss) < error
    assert at.q[0, 0] == pytest.approx(solution.norms["q"], rel=5e-3)
    assert at.V[0, 0] == pytest.approx(solution.norms["V"], rel=5e-3)
    # A slope is judged by how far it would move the minimum: off the branch it is not small.
    away = dp.analysis.landscape(paper, 1.5, [1.1 * m + 0.02], [1.1 * theta + 0.01], log2_points=14)
    for name in ("slope_m", "slope_theta"):
        assert abs(getattr(at, name)[0, 0]) < 0.02 * abs(getattr(away, name)[0, 0])
    assert away.loss[0, 0] > at.loss[0, 0]


def test_slopes_are_derivatives_of_the_loss():
    model = dp.positional_semantic(omega=0.2, sigma=0.6, mixing="other")
    step = 0.01
    m, theta = [0.2 - step, 0.2, 0.2 + step], [0.2 - step, 0.2, 0.2 + step]
    found = dp.analysis.landscape(model, 1.2, m, theta, log2_points=13)
    across = (found.loss[1, 2] - found.loss[1, 0]) / (2 * step)
    along = (found.loss[2, 1] - found.loss[0, 1]) / (2 * step)
    assert across == pytest.approx(found.slope_m[1, 1], rel=0.02)
    assert along == pytest.approx(found.slope_theta[1, 1], rel=0.02)


def test_minima_of_a_grid(paper):
    counted = []
    m, theta = np.linspace(0, 0.5, 5), np.linspace(0, 0.25, 5)
    found = dp.analysis.landscape(paper, 1.5, m, theta, log2_points=12, progress=counted.append)
    assert [event.done for event in counted] == [1, 2, 3, 4, 5]
    assert np.all(np.isfinite(found.loss))
    places = [(m, theta) for m, theta, _ in found.minima]
    assert places == [(0.0, 0.125), (0.25, 0.0)]


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"alpha": -1.0}, "alpha"),
        ({"m": [0.2, 0.1]}, "m"),
        ({"theta": [np.nan]}, "theta"),
        ({"log2_points": 3}, "log2_points"),
    ],
)
def test_bad_input(paper, arguments, field):
    given = {"alpha": 1.0, "m": [0.1], "theta": [0.1], **arguments}
    with pytest.raises(dp.InvalidInput, match=field):
        dp.analysis.landscape(paper, **given)


def test_rank_one_only(three_tokens):
    with pytest.raises(dp.InvalidInput, match="rank"):
        dp.analysis.landscape(three_tokens, 1.0, [0.1], [0.1])
