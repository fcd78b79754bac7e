"""Models with labels and tokens of their own: theory and finite dimension against closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dotphase as dp
from dotphase.finite_d import loss as finite_loss
from dotphase.finite_d.measurement import held_out_error
from dotphase.finite_d.preparation import prepare
from dotphase.finite_d.test_error import field_error, quadrature
from dotphase.model.latent import Latent
from dotphase.numerics.quadrature import Rule

#: How student and teacher read the two tokens.
READ, ASKED = np.array([1.0, -0.5]), np.array([0.8, 0.3])
NOISE, RIDGE, ALPHA = 0.4, 0.2, 1.5


def label(h, z, a):
    return ASKED @ h[:, 0] + NOISE * z[0] + a[0, 0]


def loss(x, y):
    return 0.5 * (y - READ @ x[:, 0]) ** 2


def error(x, y):
    return (y - READ @ x[:, 0]) ** 2


def proximal(omega, V, y):
    """Exact, since the loss is a square: it is as good as Newton's, and compiled sooner."""
    along = V @ READ
    return omega + (along * (y - READ @ omega[:, 0]) / (1 + READ @ along))[:, None]


@pytest.fixture(scope="module")
def model():
    """Everything at once: noise, correlated tokens, hidden states, a direction near the teacher."""
    return dp.Model(
        label,
        length=2,
        sigma=[1.0, 0.7],
        ridge=RIDGE,
        loss=loss,
        metric=error,
        noise=1,
        proximal=proximal,
        correlation=[[1.0, 0.4], [0.4, 1.0]],
        latent=Latent(
            [[[1.0, 0.0], [0.0, 0.5]], [[-0.5, 1.0], [1.0, 0.0]]],
            [0.7, 0.3],
            gram=[[1.5, 0.3], [0.3, 1.0]],
            teacher=[[0.6], [0.0]],
        ),
    )


@pytest.fixture(scope="module")
def fits(model):
    """Weights of ridge regression on data sets of the model, by linear algebra."""
    found = []
    for key in range(5):
        data = dp.sample(model, d=400, n=round(ALPHA * 400), key=key)
        x, d = np.asarray(data.tokens), 400
        h = x @ np.asarray(data.teacher_weights)[:, 0] / np.sqrt(d)
        loadings = np.asarray(model.latent.loadings)
        state = (np.asarray(data.noise[:, 1]) > 0.5244005127080407).astype(int)
        y = h @ ASKED + NOISE * np.asarray(data.noise[:, 0]) + loadings[state, 0, 0]
        features = np.einsum("l,nld->nd", READ, x) / np.sqrt(d)
        weights = np.linalg.solve(features.T @ features + RIDGE * np.eye(d), features.T @ y)
        energy = 0.5 * np.sum((y - features @ weights) ** 2) + 0.5 * RIDGE * weights @ weights
        found.append((data, weights, energy / d))
    return found


def test_theory_of_everything_at_once(model, fits):
    solution = dp.solve(model, ALPHA, "mixed", log2_points=12)
    assert solution.converged and solution.found == "mixed"
    assert solution.stability.kind == "minimum"
    np.testing.assert_allclose(solution.free_energy, solution.train_loss, rtol=3e-3)
    rule = Rule(*(part[..., :4096] for part in quadrature(model)))
    test_error = jax.jit(lambda *given: field_error(model, *given, rule))
    rows = []
    for data, weights, energy in fits:
        q = weights[:, None]
        m = np.asarray(data.positions) @ weights / 20
        missed = 16 * test_error(jnp.asarray(q), data.teacher_weights, data.positions)
        theta = float(weights @ np.asarray(data.teacher_weights)[:, 0]) / 400
        rows.append([energy, float(missed), *m, theta, weights @ weights / 400])
    mean, spread = np.mean(rows, axis=0), np.std(rows, axis=0, ddof=1) / np.sqrt(len(rows))
    overlaps = solution.overlaps
    expected = [
        solution.train_loss, solution.test_error, *overlaps.m[:, 0], overlaps.theta[0, 0, 0],
        overlaps.q[0, 0, 0],
    ]  # fmt: skip
    # Four degrees of freedom: four standard errors, and what finite size does.
    assert np.all(np.abs(mean - expected) < 4 * spread + 10 / 400 * np.abs(expected)), (
        mean, expected, spread,
    )  # fmt: skip


def test_finite_dimension_sees_the_same_loss(model, fits):
    data, weights, energy = fits[0]
    rule = Rule(*(part[..., :16384] for part in quadrature(model)))

    @jax.jit
    def look(data, q):
        prepared = prepare(model, data)
        exact = finite_loss.exact_loss(model, prepared.reduced, q)
        envelope = finite_loss.value_and_gradient(model, prepared.reduced, q)
        error = 4 * field_error(model, q, data.teacher_weights, data.positions, rule)
        drawn, key = (data.teacher_weights, data.positions), jax.random.key(3)
        return exact, *envelope, error, *held_out_error(model, q, *drawn, key, 8)

    exact, value, gradient, error, sampled, stderr = look(data, jnp.asarray(weights[:, None]))
    np.testing.assert_allclose(exact / 400, energy, rtol=1e-10)
    # The envelope is below the loss, and its slope vanishes close to the minimum of the loss.
    assert energy * (1 - 5e-3) < float(value) / 400 < energy
    assert float(jnp.linalg.norm(gradient)) < 1e-2 * float(np.linalg.norm(weights))
    assert abs(float(error - sampled)) < 4 * float(stderr)
