"""Functions that are not finite: named in the message, without harm to other points."""

import jax.numpy as jnp

import dotphase as dp
from models import identity


def test_one_bad_point_does_not_spoil_a_batch(paper, monkeypatch):
    def explode(h):
        return jnp.where(jnp.abs(h) > 1.5, jnp.nan, h)

    monkeypatch.setattr("dotphase.model.definition.check_functions", lambda model: None)
    bad = dp.Model(teacher=identity, student=explode, length=1, sigma=1.5)
    good, broken, again = dp.solve_many(
        [(paper, 2.0, "semantic"), (bad, 1.0, "semantic"), (paper, 2.0, "semantic")], log2_points=12
    )
    assert good.converged and again.converged
    assert not broken.converged
    assert not broken.stability.trusted
    assert "not finite: the student is not finite at h = [[" in broken.message
    assert good.train_loss == again.train_loss


def test_a_derivative_that_is_no_number_is_named():
    def trap(h):  # the derivative of the root is infinite where it is not taken
        return h + 0.01 * jnp.where(h < 1, jnp.sqrt(1 - h), 0.0)

    model = dp.Model(teacher=identity, student=trap, length=1, sigma=1.0)
    solution = dp.solve(model, 2.0, log2_points=12)
    assert not solution.converged and not solution.stability.trusted
    assert "the derivative of the student is not finite at h = [[" in solution.message
