import jax
import numpy as np
import pytest

from dotphase.numerics import linalg as small


@pytest.fixture(params=[1, 2, 3, 6, 8, 11])
def size(request):
    return request.param


def _symmetric(rng, size, eigenvalues):
    basis, _ = np.linalg.qr(rng.normal(size=(size, size)))
    matrix = (basis * eigenvalues) @ basis.T
    return (matrix + matrix.T) / 2


def test_products_match_numpy(size, rng):
    a, b, matrix = rng.normal(size=size), rng.normal(size=size), rng.normal(size=(size, size))
    np.testing.assert_allclose(small.dot(a, b), a @ b, rtol=1e-12)
    np.testing.assert_allclose(small.matvec(matrix, a), matrix @ a, rtol=1e-12)
    np.testing.assert_allclose(small.trace(matrix), np.trace(matrix), rtol=1e-12)
    np.testing.assert_allclose(small.largest(a), np.abs(a).max())


def test_solve_matches_numpy(size, rng):
    matrix = _symmetric(rng, size, np.linspace(0.3, 4, size))
    right = rng.normal(size=size)
    solved = small.solve_symmetric(small.upper_rows(matrix), right)
    np.testing.assert_allclose(solved, np.linalg.solve(matrix, right), rtol=1e-10)


def test_definiteness_is_recognised(size, rng):
    positive = _symmetric(rng, size, np.linspace(0.1, 2, size))
    assert bool(small.is_positive_definite(small.upper_rows(positive)))
    eigenvalues = np.linspace(0.1, 2, size)
    eigenvalues[size // 2] = -0.05
    indefinite = _symmetric(rng, size, eigenvalues)
    assert not bool(small.is_positive_definite(small.upper_rows(indefinite)))


def test_shift_leaves_positive_matrices_alone_and_mends_the_others(size, rng):
    positive = _symmetric(rng, size, np.linspace(0.1, 2, size))
    np.testing.assert_array_equal(_mended(positive, 0.5), positive)
    indefinite = _symmetric(rng, size, np.linspace(-1, 2, size) if size > 1 else [-1.0])
    assert np.linalg.eigvalsh(_mended(indefinite, 0.05)).min() > 0.049


@pytest.mark.parametrize("positive", [True, False])
def test_steps_downhill_are_those_of_each_matrix(size, rng, positive):
    axis, count = (-1 if size <= small.UNROLL_LIMIT else 0), 5
    least = [0.1] * count if positive else [0.1, -0.4, 0.2, -1.0, 0.3]
    matrices = [_symmetric(rng, size, np.linspace(2, low, size)) for low in least]
    right = rng.normal(size=(count, size))
    given = small.upper_rows(np.moveaxis(matrices, 0, axis)) if axis else np.stack(matrices)
    sides = small.entries(right.T) if axis else right
    downhill = jax.jit(small.downhill, static_argnums=3)
    found = np.asarray(downhill(given, sides, 0.05, axis))
    expected = [np.linalg.solve(_mended(a, 0.05), b) for a, b in zip(matrices, right, strict=True)]
    np.testing.assert_allclose(found.T if axis else found, expected, rtol=1e-9)


_shifted = jax.jit(small.shifted_to_positive)


def _mended(matrix, margin):
    """`shifted_to_positive`, as a full array again."""
    mended = _shifted(small.upper_rows(matrix), margin)
    if not isinstance(mended, tuple):
        return np.asarray(mended)
    full = np.zeros_like(matrix)
    for i, row in enumerate(mended):
        full[i, i:] = full[i:, i] = row
    return full
