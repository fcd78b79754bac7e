"""State evolution with structured tokens: the white case, a direct simulation, its energy."""

import numpy as np
import pytest

import dotphase as dp
from dotphase.model.spectrum import Spectrum, power_law
from dotphase.theory.overlaps import Conjugates
from dotphase.theory.stability import replicon_operator
from dotphase.theory.state_evolution import (
    next_overlaps,
    resolvent,
    teacher_drive,
    weight_drive,
    weight_gram,
)

VALUES = np.array([[2.0, 1.0, 0.4], [0.5, 1.5, 1.0]])
WEIGHTS = np.array([0.2, 0.3, 0.5])


def model_with(spectrum):
    return dp.Model(
        teacher=dp.softmax_attention, student=dp.softmax_attention, length=2, student_rank=2,
        sigma=[0.5, 0.8], positions=[[1.0, -0.4], [-0.4, 0.7]], ridge=0.3, spectrum=spectrum,
    )  # fmt: skip


@pytest.fixture
def hats(rng):
    def positive():
        root = rng.standard_normal((2, 2, 2))
        return root @ root.swapaxes(1, 2)

    return Conjugates(
        positive(), rng.standard_normal((2, 2)), positive(), rng.standard_normal((2, 2, 1))
    )


def test_equal_eigenvalues_are_white(hats, rng):
    white = model_with(None)
    R, rho = resolvent(white, hats)[0], white.rho
    for spectrum in (Spectrum([1.0, 1.0], [0.3, 0.7]), Spectrum(np.ones((2, 3)))):
        found = next_overlaps(model_with(spectrum), hats)
        for one, two in zip(found, next_overlaps(white, hats), strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-12)
        # The replicon of white tokens: M -> R sum_kl rho_k rho_l E[G M G^T] R^T.
        root = rng.standard_normal((2, 2, 2, 2))
        squared = np.einsum("klab,klcd->klacbd", root, root).reshape(1, 2, 2, 4, 4)
        expected = np.kron(R, R) @ np.einsum("k,l,klxy->xy", rho, rho, squared[0])
        model = model_with(spectrum)
        operator = replicon_operator(model, resolvent(model, hats), squared)
        largest = [np.abs(np.linalg.eigvals(matrix)).max() for matrix in (operator[0], expected)]
        assert largest[0] == pytest.approx(largest[1], rel=1e-9)


def test_overlaps_are_those_of_weights_in_the_eigenbasis(hats, rng):
    """Every row of Q minimises its quadratic form: Q_j = R_j b_j with the drives of its own."""
    model = model_with(Spectrum(VALUES, WEIGHTS))
    d = 100_000
    atom = np.repeat(np.arange(3), (WEIGHTS * d).round().astype(int))
    gamma = model.eigenvalues[:, atom]
    teacher = rng.standard_normal((d, 1))
    mixing = np.linalg.cholesky(model.positions)
    p = mixing @ rng.standard_normal((2, d)) / np.sqrt(d)
    noise = np.einsum("ljk,lkd->djl", np.linalg.cholesky(hats.qhat), rng.standard_normal((2, 2, d)))
    drive = np.einsum("ld,djl->dj", np.sqrt(gamma), noise)
    drive = drive + np.einsum("ld,lit,dt->di", gamma, hats.thetahat, teacher)
    drive = drive + np.sqrt(d) * p.T @ hats.mhat
    stiffness = 0.3 * np.eye(2) + np.einsum("ld,lij->dij", gamma, hats.Vhat)
    Q = np.linalg.solve(stiffness, drive[..., None])[..., 0]
    found = next_overlaps(model, hats)
    np.testing.assert_allclose(found.q, np.einsum("ld,di,dj->lij", gamma, Q, Q) / d, atol=0.03)
    np.testing.assert_allclose(
        found.theta, np.einsum("ld,di,dt->lit", gamma, Q, teacher) / d, atol=0.03
    )
    np.testing.assert_allclose(found.m, p @ Q / np.sqrt(d), atol=0.03)
    mean = np.einsum("ld,dij->lij", gamma, np.linalg.inv(stiffness)) / d
    np.testing.assert_allclose(found.V, mean, rtol=1e-9)
    gram = np.einsum("aij,a->ij", weight_gram(model, hats), WEIGHTS)
    np.testing.assert_allclose(gram, Q.T @ Q / d, atol=0.03)
    assert teacher_drive(model, hats).shape == (3, 2, 1) and weight_drive(model, hats).shape == (
        3,
        2,
        2,
    )


@pytest.mark.parametrize("spectrum", [power_law(1.0, 8), Spectrum(VALUES, WEIGHTS)])
def test_energy_and_free_energy_agree_at_a_fixed_point(spectrum):
    model = dp.positional_semantic(spectrum=spectrum)
    tight = dp.Iteration(tolerance=1e-7)
    solution = dp.solve(model, 2.0, "semantic", log2_points=12, iteration=tight)
    assert solution.on_branch and solution.stability.trusted
    assert solution.free_energy == pytest.approx(solution.train_loss, rel=1e-5)


def test_tokens_with_equal_spectra_of_their_own_are_solved_alike(paper):
    own = dp.positional_semantic(spectrum=Spectrum(np.ones((2, 2))))
    one, two = (dp.solve(model, 2.0, "semantic", log2_points=12) for model in (paper, own))
    assert two.train_loss == pytest.approx(one.train_loss, rel=1e-3)
    assert two.test_error == pytest.approx(one.test_error, rel=1e-3)
    assert two.stability.replicon == pytest.approx(one.stability.replicon, rel=1e-2)
