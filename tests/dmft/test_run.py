"""`dp.dynamics` against closed forms, hand calculations, training and the population flow."""

from dataclasses import fields

import jax
import numpy as np
import pytest

import dotphase as dp
from dotphase.dmft.settings import DynamicsFields, DynamicsSettings
from dotphase.numerics.quadrature import gauss_hermite

SMALL = {"log2_ensemble": 8, "repetitions": 4, "rtol": None}
STEPS = 12


def marchenko_pastur(alpha, order=400):
    """Nodes and weights of the law of the eigenvalues of Z^T Z/d."""
    low, high = (np.sqrt(alpha) - 1) ** 2, (np.sqrt(alpha) + 1) ** 2
    angle = np.pi * (np.arange(order) + 0.5) / order
    s = (low + high) / 2 + (high - low) / 2 * np.cos(angle)
    weight = (high - low) ** 2 / 4 * np.sin(angle) ** 2 / (2 * np.pi * s) * np.pi / order
    return np.append(s, 0.0), np.append(weight, max(0.0, 1 - alpha))


def ridge_regression_path(alpha, ridge, lr, momentum, q):
    """Gradient descent from a random start, eigenvalue by eigenvalue."""
    s, weight = marchenko_pastur(alpha)
    # w = a w_0 + b w_*, with orthogonal unit vectors.
    now = before = np.stack([np.ones_like(s), np.zeros_like(s)])
    rows = []
    for _ in range(STEPS + 1):
        a, b = now[0] * np.sqrt(q), now[1]
        loss = (s * (a**2 + (b - 1) ** 2) / 2 + ridge / 2 * (a**2 + b**2)) @ weight
        rows.append((loss, (a**2 + (b - 1) ** 2) @ weight, b @ weight, (a**2 + b**2) @ weight))
        pull = np.stack([(s + ridge) * now[0], (s + ridge) * now[1] - s])
        now, before = now - lr * pull + momentum * (now - before), now
    return dict(zip(("train_loss", "test_error", "theta", "q"), np.array(rows).T, strict=True))


@pytest.mark.parametrize(("alpha", "momentum"), [(0.5, 0.0), (2.0, 0.0), (2.0, 0.5)])
def test_ridge_regression_in_closed_form(alpha, momentum):
    model = _regression()
    path = dp.dynamics(
        model, alpha, dp.start_from(q=0.5), steps=STEPS, lr=0.3, momentum=momentum,
        **SMALL | {"log2_ensemble": 10},
    )  # fmt: skip
    exact = ridge_regression_path(alpha, 0.05, 0.3, momentum, 0.5)
    for name, values in exact.items():
        off = np.abs(getattr(path, name) - values)
        assert np.all(off <= 0.01 * values.max()), name
        assert np.all(off <= 6 * path.stderr[name] + 2e-3 * values.max()), name


def _regression():
    return dp.scalar_link(_identity, _identity, ridge=0.05)


def _identity(h):
    return h


def test_one_step_by_hand(paper):
    """theta_1 = (1 - lr ridge) theta_0 - lr alpha sum_l E[g_l h*_l], in units of sigma^2."""
    rule = gauss_hermite(16, 2)
    h = 0.5 * rule.points
    target = jax.vmap(paper.teacher, -1, -1)(h[:, None])
    force = jax.vmap(jax.grad(paper.energy), (-1, -1), -1)(h[:, None], target)[:, 0]
    pull = np.sum(np.asarray(force) * h * rule.weights)
    path = dp.dynamics(paper, 2.0, "semantic", steps=1, lr=8.0, **SMALL)
    expected = 0.25 * (1 - 8 * 0.01 - 8 * 2.0 * pull)
    np.testing.assert_allclose(path.theta[1], expected, rtol=1e-3)
    assert path.m[1] == 0


def test_the_dynamics_follows_training(three_tokens):
    """Three tokens, rank two, unequal sigma: the mean over data sets, up to terms of order 1/d.

    Those of the losses are large, because the positions do not cancel.
    """
    start = dp.start_from(theta=[[0.15], [0.0]], m=[0.2, 0.3], q=[[0.3, 0.05], [0.05, 0.25]])
    rule = {"steps": STEPS, "lr": 1.0}
    path = dp.dynamics(three_tokens, 1.5, start, **rule, **SMALL)
    runs = dp.train(
        three_tokens, 1.5, 400, seeds=4, start=start, optimizer="gd", record=True, **rule
    )
    assert path.trusted_until == STEPS
    for name in ("train_loss", "test_error", "theta", "m", "q"):
        trained = runs.path[name]
        error = np.hypot(trained.std("seed", ddof=1) / 2, path.stderr[name])
        off = np.abs(trained.mean("seed") - getattr(path, name))
        share = 0.1 if name in ("train_loss", "test_error") else 0.03
        assert bool(np.all(off <= 4 * error + share * np.abs(getattr(path, name)))), name


@pytest.mark.parametrize("momentum", [0.0, 0.6])
def test_momentum_is_that_of_training(paper, momentum):
    start = dp.start_from(theta=0.1, m=0.3, q=0.2)
    rule = {"steps": STEPS, "lr": 3.0, "momentum": momentum}
    path = dp.dynamics(paper, 1.0, start, **rule, **SMALL)
    runs = dp.train(
        paper, 1.0, 100, seeds=6, start=start, optimizer="momentum", record=True, **rule
    )
    for name in ("theta", "m", "q"):
        trained = runs.path[name]
        error = np.hypot(trained.std("seed", ddof=1) / np.sqrt(6), path.stderr[name])
        off = np.abs(trained.mean("seed") - getattr(path, name))
        assert bool(np.all(off <= 4 * error + 5e-3)), name


def test_the_law_of_a_finite_dimension_is_that_of_training(paper):
    rule = {"steps": STEPS, "lr": 8.0}
    drawn = dp.dynamics(paper, 1.0, "random", d=80, **rule, scale=0.5, repetitions=20)
    runs = dp.train(
        paper, 1.0, 80, seeds=20, start="random", scale=0.5, optimizer="gd", record=True, **rule
    )
    for name in ("theta", "m", "q"):
        trained = runs.path[name]
        error = np.hypot(trained.std("seed", ddof=1) / np.sqrt(20), drawn.stderr[name])
        off = np.abs(trained.mean("seed") - getattr(drawn, name))
        assert bool(np.all(off <= 4 * error + 0.02 * trained.mean("seed"))), name
        spread = drawn.samples[name][:, 3:].std(0) / trained.isel(step=slice(3, None)).std("seed")
        assert bool(np.all((spread > 0.5) & (spread < 2))), name


def test_a_population_of_sentences_is_the_population_flow(paper):
    alpha, tau, steps = 40.0, 8.0, 8
    start = {"m": 0.1, "theta": 0.03, "q": 0.06}
    lr = tau / steps / alpha
    path = dp.dynamics(paper, alpha, dp.start_from(**start), steps=steps, lr=lr, **SMALL)
    model = paper.replace(ridge=paper.ridge)
    flow = dp.flow.follow(model, alpha=alpha, times=[tau], **start)
    for name in ("m", "theta", "q"):
        np.testing.assert_allclose(getattr(path, name)[-1], getattr(flow, name)[-1], rtol=0.03)


def test_mini_batches_add_noise_of_their_size(paper):
    """After one step from Q = Q*: |w|^2 has an extra lr^2 |g|^2 (1/b - 1) in the mean."""
    full, half = (
        dp.dynamics(paper, 1.0, "semantic", steps=2, lr=8.0, batch_fraction=b, **SMALL)
        for b in (1.0, 0.5)
    )
    assert half.q[1] > full.q[1]
    np.testing.assert_allclose(half.theta[1], full.theta[1], rtol=0.01)
    assert half.train_loss[0] == full.train_loss[0]


def test_learning_rates_may_be_a_schedule(paper):
    falling = [8.0, 4.0, 2.0]
    by_list = dp.dynamics(paper, 1.0, steps=3, lr=falling, **SMALL)
    by_function = dp.dynamics(paper, 1.0, steps=3, lr=lambda step: falling[step], **SMALL)
    same = dp.dynamics(paper, 1.0, steps=3, lr=8.0, **SMALL)
    np.testing.assert_array_equal(by_list.theta, by_function.theta)
    assert by_list.theta[1] == same.theta[1]
    assert by_list.theta[2] != same.theta[2]


def test_the_seed_decides_the_numbers(paper):
    first, again, other = (
        dp.dynamics(paper, 1.0, steps=3, lr=8.0, seed=seed, **SMALL) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first.theta, again.theta)
    assert first.theta[-1] != other.theta[-1]


def test_every_repetition_is_an_event(paper):
    events = []
    dp.dynamics(paper, 1.0, steps=2, lr=8.0, progress=events.append, **SMALL)
    assert [event.done for event in events] == [1, 2, 3, 4]
    assert {(event.stage, event.total) for event in events} == {("dynamics", 4)}


def test_symmetric_starts_stay_symmetric(paper):
    with pytest.warns(UserWarning, match="stay zero in the limit of large d.*give d"):
        path = dp.dynamics(paper, 1.0, "random", steps=STEPS, lr=8.0, scale=0.5, **SMALL)
    assert not np.any(path.theta)
    assert not np.any(path.m)
    assert path.q[-1] != path.q[0]


def test_ensembles_grow_until_the_accuracy_is_met_or_the_message_reports_it(paper):
    rule = {"steps": 4, "lr": 8.0, "repetitions": 4}
    grown = dp.dynamics(paper, 1.0, **rule, log2_ensemble=7, rtol=2e-3, max_log2_ensemble=9)
    assert grown.accurate
    assert grown.sentences > 2**7
    stopped = dp.dynamics(paper, 1.0, **rule, log2_ensemble=7, rtol=2e-4, max_log2_ensemble=8)
    assert not stopped.accurate
    assert "rtol" in stopped.message


def test_divergence_has_a_step(paper):
    path = dp.dynamics(paper, 1.0, steps=8, lr=1000.0, **SMALL)
    assert path.diverged
    assert path.diverged_at == path.trusted_until + 1 == 2
    assert "diverged at step 2" in path.message


def test_repetitions_that_disagree_are_not_trusted(paper):
    """Near an unstable point tiny ensembles go different ways."""
    start = dp.start_from(theta=1e-5, m=1e-5, q=0.01)
    path = dp.dynamics(
        paper, 1.5, start, steps=60, lr=20.0, log2_ensemble=9, repetitions=6, rtol=None
    )
    assert 0 < path.trusted_until < 60
    assert "NOT TRUSTED after step" in path.message


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"lr": 0.0}, "lr"),
        ({"lr": [1.0, 2.0]}, "lr"),
        ({"lr": "fast"}, "lr"),
        ({"steps": 0}, "steps"),
        ({"momentum": 1.0}, "momentum"),
        ({"batch_fraction": 0.0}, "batch_fraction"),
        ({"alpha": -1.0}, "alpha"),
        ({"start": "nowhere"}, "start"),
        ({"start": lambda key, teacher, positions: teacher}, "start"),
        ({"start": dp.start_from(theta=0.1, m=0.1, q=0.01)}, "q"),
        ({"rtol": 0.0}, "rtol"),
        ({"d": 20}, "d"),
        ({"scale": 0.0}, "scale"),
    ],
)
def test_bad_input(paper, arguments, field):
    arguments = {"alpha": 1.0, "steps": 10, "lr": 8.0} | arguments
    with pytest.raises(dp.InvalidInput) as caught:
        dp.dynamics(paper, **arguments)
    assert caught.value.field == field


def test_spectra_are_refused():
    model = dp.positional_semantic(spectrum=dp.Spectrum([0.5, 1.5]))
    with pytest.raises(dp.InvalidInput, match="white tokens"):
        dp.dynamics(model, 1.0, steps=2, lr=1.0)


def test_settings_and_keywords_are_the_same():
    assert list(DynamicsFields.__annotations__) == [f.name for f in fields(DynamicsSettings)]
