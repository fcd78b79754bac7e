"""Two ways to the responses: integration by parts, as in the conditioned descent, and derivatives.

``Gamma(t, s) = alpha sum_l rho_l E[d g_l^t/d u_l^s]`` with total derivatives through the memory
``h_l^t = m_l^t + u_l^t + rho_l sum_{s<t} R(t, s) g_l^s``.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import dotphase as dp
from dotphase.dmft import conditioned_descent
from dotphase.dmft.conditioned_descent import Inputs, UpdateRule
from dotphase.dmft.ensemble import _first_fields
from dotphase.dmft.initialization import limit_initialization
from dotphase.finite_d.initialization import start_components

STEPS, CAPACITY, N, ALPHA, LR = 4, 8, 4096, 1.5, 6.0

advance = eqx.filter_jit(conditioned_descent.advance)


def test_integration_by_parts_agrees_with_the_derivative_recursion(paper):
    initial = limit_initialization(
        paper, start_components(paper, dp.start_from(theta=0.1, m=0.2, q=0.15))
    )
    rule = UpdateRule(False, False, *map(jnp.asarray, (N / ALPHA, 0.0, 1.0)))
    heads, points = _first_fields(paper, N, False, np.random.default_rng(0))
    state = eqx.filter_jit(conditioned_descent.initial_state)(
        paper, initial, rule, heads, jnp.zeros((0, N)), points[0], CAPACITY, np.dtype(np.float64)
    )
    inputs = Inputs(paper, initial, rule, points, jnp.full(CAPACITY, LR), jax.random.key(0))
    weights = []
    for step in range(STEPS):
        weights.append(state.weights[0])
        state = advance(inputs, state, jnp.asarray(step + 1))
    w = np.stack(weights)
    state = jax.tree.map(np.asarray, state)
    sigma, rho, base = paper.sigma, np.asarray(paper.rho), initial.weights.shape[1]

    # The three parts of the fields: means, Gaussian part, memory in the basis of the forces.
    m = np.asarray(initial.positions) @ w[:, :base].T
    components = w @ state.weight_basis.T
    u = np.stack([sigma[l] * components @ state.fields[l] for l in range(2)])
    inside = np.stack([w @ state.images[l].T for l in range(2)])
    memory = np.stack([sigma[l] * inside[l] @ state.force_basis[l] for l in range(2)])
    slope = jax.grad(paper.energy)
    forces = jax.jit(jax.vmap(jax.vmap(slope, (-1, -1), -1), (1, None), 1))(
        (m[..., None] + u + memory)[:, :, None], state.target
    )
    forces = np.asarray(forces)[:, :, 0]

    # R(t, s) from the memory, and Gamma(t, s) from the fields' products with the forces.
    R = np.zeros((STEPS, STEPS))
    for t in range(1, STEPS):
        solved = np.linalg.lstsq(np.asarray(rho[0] * forces[0, :t]).T, np.asarray(memory[0, t]))
        R[t, :t] = solved[0]
    along = sum(sigma[l] * forces[l] @ state.fields[l].T for l in range(2)) * ALPHA / N
    teacher = np.asarray(initial.teacher) @ state.weight_basis[:, :base].T
    basis = np.concatenate([teacher, components])
    by_parts = np.linalg.lstsq(np.asarray(basis).T, np.asarray(along).T)[0].T[:, 1:]

    def force_of(u, m, target):
        """Forces of one sentence at all steps, from its Gaussian fields."""
        g = []
        for t in range(STEPS):
            past = sum((R[t, s] * g[s] for s in range(t)), jnp.zeros(2))
            h = m[:, t] + u[:, t] + jnp.asarray(rho) * past
            g.append(slope(h[:, None], target)[:, 0])
        return jnp.stack(g, axis=1)

    jacobian = jax.jit(jax.vmap(jax.jacfwd(force_of), (-1, None, -1)))(u, m, state.target)
    derivative = ALPHA * np.einsum("l,nltls->ts", rho, jacobian) / N
    size = np.abs(derivative).max()
    assert size > 0.01
    np.testing.assert_allclose(by_parts, derivative, atol=0.03 * size)
    assert np.abs(np.tril(derivative, -1)).max() > 0.05 * size  # the memory is seen
    np.testing.assert_allclose(np.triu(derivative, 1), 0, atol=1e-12)
