"""Optimal parameters: noisy linear regression, and the paper's model by brute force."""

import jax.numpy as jnp
import pytest

import dotphase as dp


def noisy_regression(noise, ridge):
    """Linear regression with labels that have noise of a given standard deviation."""
    return dp.Model(
        teacher=lambda h, z: h[0, 0] + noise * z[0],
        loss=lambda x, y: 0.5 * jnp.square(y - x[0, 0]),
        length=1,
        sigma=1.0,
        ridge=ridge,
        noise=1,
    )


@pytest.mark.parametrize(("noise", "ridge"), [(0.5, 0.05), (1.0, 3.0)])
def test_the_optimal_ridge_of_linear_regression_is_the_noise_variance(noise, ridge):
    best = dp.optimal(noisy_regression(noise, ridge), "ridge", alpha=2.0, log2_points=14)
    assert abs(best.value - noise**2) < 3 * best.stderr + 1e-3 * noise**2
    assert best.stderr < 0.1 * noise**2


def test_the_optimal_ridge_of_the_paper_beats_its_neighbors(paper):
    best = dp.optimal(paper, "ridge", alpha=2.0, log2_points=13)
    for factor in (0.25, 4.0):
        model = dp.positional_semantic(ridge=factor * best.value)
        neighbor = dp.solve(model, 2.0, log2_points=13)
        assert neighbor.test_error > best.solution.test_error
    assert best.solution.derivative("ridge").value["test_error"] == pytest.approx(0, abs=0.01)
    assert "ridge" in str(best) and "smallest test_error" in str(best)


def test_a_result_without_a_minimum_and_bad_names_are_refused(paper):
    with pytest.raises(dp.InvalidInput, match=r"ridge = .* has no minimum"):
        dp.optimal(paper, "ridge", alpha=2.0, of="train_loss", log2_points=12)
    with pytest.raises(dp.InvalidInput, match=r"omega = 1\.2: is outside \[0, 1\]"):
        dp.optimal(paper, "omega", alpha=2.0, of="train_loss", start="positional", log2_points=12)
    with pytest.raises(dp.InvalidInput, match=r"^of = 'loss'"):
        dp.optimal(paper, "ridge", alpha=2.0, of="loss")
    with pytest.raises(dp.InvalidInput, match=r"^parameter = 'beta'"):
        dp.optimal(paper, "beta", alpha=2.0)
