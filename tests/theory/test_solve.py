"""Solutions: against closed forms, reference numbers, finite-d training and each other."""

import csv
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dotphase as dp
from dotphase.model.derivatives import is_softmax_attention
from dotphase.runtime import threads
from models import POSITIONS, softmax, three_tokens

RESULTS = ("train_loss", "test_error")


def _values(solution):
    return {**solution.norms, **{name: getattr(solution, name) for name in RESULTS}}


def test_reference_numbers(reference):
    with open(reference / "theory.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows
    for row in rows:
        model = dp.positional_semantic(
            omega=float(row["omega"]), sigma=float(row["sigma"]), ridge=float(row["lambda"])
        )
        solution = dp.solve(model, float(row["alpha"]), row["branch"], rtol=3e-3)
        assert solution.converged and solution.on_branch
        for name, value in _values(solution).items():
            expected = float(row[name])
            if expected == 0:
                assert value == 0
                continue
            assert abs(value / expected - 1) < 5e-3, (row, name)
            error = max(solution.stderr[name], 1e-3 * expected)
            assert abs(value - expected) < 4 * error, (row, name)


@pytest.mark.parametrize("branch", ["semantic", "positional", "uninformed"])
def test_branches_of_the_paper_and_their_two_training_losses(paper, branch):
    solution = dp.solve(paper, 1.7, branch, log2_points=14)
    assert solution.found == branch
    assert solution.converged
    np.testing.assert_allclose(solution.free_energy, solution.train_loss, rtol=1e-3)
    assert (solution.norms["theta"] > 0) == (branch == "semantic")
    assert (solution.norms["m"] > 0) == (branch == "positional")
    assert solution.residual < 2e-4


def test_same_seed_same_numbers_other_seed_other_numbers(paper):
    first, again = (dp.solve(paper, 1.5, "semantic", log2_points=13, seed=3) for _ in range(2))
    assert _values(first) == _values(again)
    assert _values(first) != _values(dp.solve(paper, 1.5, "semantic", log2_points=13, seed=4))


def test_mixed_branch_of_a_rank_two_student():
    solution = dp.solve(dp.positional_semantic(student_rank=2), 2.0, "mixed", log2_points=14)
    assert solution.found == "mixed"
    np.testing.assert_allclose(solution.train_loss, 0.002787, rtol=1.5e-2)
    np.testing.assert_allclose(solution.test_error, 0.001342, rtol=1.5e-2)


def test_a_user_can_start_anywhere(paper):
    known = dp.solve(paper, 1.5, "semantic", log2_points=13)
    start = dp.Overlaps(*(part * 1.1 for part in known.overlaps))
    again = dp.solve(paper, 1.5, start, log2_points=13)
    assert again.branch == "custom" and again.on_branch
    np.testing.assert_allclose(again.norms["theta"], known.norms["theta"], rtol=1e-3)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [({"alpha": 0}, "alpha"), ({"alpha": -1.0}, "alpha"), ({"alpha": math.nan}, "alpha"),
     ({"alpha": "two"}, "alpha"), ({"start": "sideways"}, "start"), ({"start": 3}, "start"),
     ({"rtol": 0}, "rtol")],
)  # fmt: skip
def test_bad_arguments_are_refused(paper, arguments, field):
    with pytest.raises(ValueError, match=f"^{field} = ") as caught:
        dp.solve(paper, **({"alpha": 1.5} | arguments))
    assert "\n" not in str(caught.value)


def test_host_settings_are_left_alone(paper):
    with jax.enable_x64(False):
        solution = dp.solve(paper, 2.0, "semantic", log2_points=12)
        assert jnp.ones(1).dtype == jnp.float32
    assert isinstance(solution.train_loss, float)
    assert solution.overlaps.q.dtype == np.float64


@pytest.fixture(scope="module")
def solved_alone():
    """Points of several kinds, and their solutions one by one."""
    kinds = [(0.3, 0.01, 2.0, "semantic"), (0.5, 0.02, 2.0, "positional"),
             (0.3, 0.01, 0.5, "semantic"), (0.4, 0.1, 1.0, "uninformed")]  # fmt: skip
    points = [
        (dp.positional_semantic(omega=omega, ridge=ridge), alpha, branch)
        for omega, ridge, alpha, branch in kinds
    ]
    return [(point, dp.solve(*point, log2_points=12)) for point in points]


@pytest.mark.parametrize("cores", [1, 3])
def test_many_points_have_the_numbers_of_single_solves(solved_alone, cores, monkeypatch):
    monkeypatch.setattr(threads, "CORES", cores)
    events = []
    points = [point for point, _ in solved_alone]
    solutions = dp.solve_many(points, log2_points=12, progress=events.append)
    assert [event.done for event in events] == [1, 2, 3, 4]
    assert [event.result for event in events] == solutions
    for ((_, alpha, branch), expected), solution in zip(solved_alone, solutions, strict=True):
        assert solution.alpha == alpha and solution.branch == branch
        assert solution.found == expected.found
        assert solution.train_loss == expected.train_loss


@pytest.mark.parametrize("points", [3, "x", [(1, 2)], [None]])
def test_points_that_are_no_list_of_points_are_refused(points):
    for function in (dp.solve_many, dp.analysis.solve_many_broken):
        with pytest.raises(dp.InvalidInput, match=r"points = .*model, alpha, start"):
            function(points)


def test_general_path_agrees_with_the_closed_form(paper):
    def teacher(h):
        return 0.7 * softmax(h) + 0.3 * jnp.array([[0.6, 0.4], [0.4, 0.6]])

    def student(h):  # softmax in a spelling that is not recognised
        weights = jnp.exp(h @ h.T)
        return weights / weights.sum(axis=1, keepdims=True)

    assert is_softmax_attention(softmax, 2, 1) and not is_softmax_attention(student, 2, 1)
    plain = dp.Model(
        teacher=teacher, student=student, length=2, sigma=0.5,
        positions=[[1.0, -1.0], [-1.0, 1.0]], ridge=0.01,
    )  # fmt: skip
    one = dp.solve(paper, 1.5, "semantic", log2_points=12)
    two = dp.solve(plain, 1.5, "semantic", log2_points=12)
    for name, value in _values(one).items():
        np.testing.assert_allclose(_values(two)[name], value, rtol=1e-3, atol=1e-12)


@eqx.filter_jit
def _gradient_descent(model, d, semantic, seeds=8, steps=400):
    """Naive training of a three-token model: the whole sentence, autodiff, plain steps."""
    n = 2 * d
    root = jnp.asarray(np.linalg.cholesky(POSITIONS))

    def run(key):
        keys = jax.random.split(key, 3)
        sigma = jnp.asarray(model.sigma)
        x = jax.random.normal(keys[0], (n, 3, d)) * sigma[:, None]
        teacher = jax.random.normal(keys[1], (d, 1))
        basis, _ = jnp.linalg.qr(jax.random.normal(keys[2], (d, 3)))
        p = root @ basis.T
        z = x + p
        y = jnp.einsum("nkl,nld->nkd", jax.vmap(model.teacher)(x @ teacher / d**0.5), x)

        def loss(q):
            attention = jax.vmap(softmax)(z @ q / d**0.5)
            answer = jnp.einsum("nkl,nld->nkd", attention, z)
            return jnp.sum((y - answer) ** 2) / (2 * d) + 0.005 * jnp.sum(q**2)

        q0 = jnp.where(semantic, teacher, 0.5 * p[:1].T * d**0.5)
        slope = jax.grad(loss)
        q = jax.lax.fori_loop(0, steps, lambda _, q: q - 1.5 * slope(q), q0)
        theta = sigma[0] ** 2 * jnp.abs(q.T @ teacher)[0, 0] / d
        m = jnp.abs(p[0] @ q[:, 0]) / d**0.5
        size = sigma[0] ** 2 * jnp.sum(q**2) / d
        return loss(q) / d, theta, m, size, jnp.linalg.norm(slope(q)) / d**0.5

    return jax.lax.map(run, jax.random.split(jax.random.key(7), seeds))


@pytest.mark.parametrize(("branch", "weight"), [("semantic", 0.3), ("positional", 0.8)])
def test_three_tokens_agree_with_training(branch, weight):
    """Two sizes, extrapolated: the positional encodings in the values add terms of order 1/d."""
    model = three_tokens(weight)
    solution = dp.solve(model, 2.0, branch, log2_points=14)
    assert solution.found == branch
    semantic = np.asarray(branch == "semantic")
    runs = [np.asarray(_gradient_descent(model, d, semantic)) for d in (100, 200)]
    assert max(np.max(run[-1]) for run in runs) < 1e-3
    mechanism = ("theta", 1) if branch == "semantic" else ("m", 2)
    for name, row in [("train_loss", 0), mechanism, ("q", 3)]:
        small, large = (run[row] for run in runs)
        limit = 2 * large.mean() - small.mean()
        error = math.hypot(2 * large.std(ddof=1), small.std(ddof=1)) / math.sqrt(small.size)
        expected = _values(solution)[name]
        assert error < 0.1 * expected, name
        assert abs(limit - expected) < 3 * error + 0.02 * expected, name


def test_a_strong_ridge_leaves_no_student():
    """Semantic learning needs enough data for its ridge: here Q = 0 is what the branch becomes."""
    solution = dp.solve(dp.positional_semantic(ridge=0.1), 1.5, "semantic", log2_points=12)
    assert solution.found == "uninformed" and solution.converged
    assert solution.norms["q"] < 1e-5
    # At Q = 0 attention is uniform: eps_g = (1/L) E tr[(T - 1/2) diag(rho) (T - 1/2)^T].
    np.testing.assert_allclose(solution.train_loss, 1.5 * solution.test_error, rtol=1e-2)
    assert all(math.isfinite(error) for error in solution.stderr.values())


def test_the_points_inside_a_cluster_need_symmetry_breaking():
    with pytest.raises(dp.InvalidInput, match="breaking"):
        dp.solve(dp.positional_semantic(), 2.0, inner=9)
