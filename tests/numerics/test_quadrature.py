import numpy as np
import pytest

from dotphase.numerics.quadrature import (
    LOG2_BLOCK_SIZE,
    MIN_QUADRATURE_LOG2,
    N_SCRAMBLES,
    gaussian_blocks,
)


def test_same_seed_same_points_other_seed_other_points():
    first = gaussian_blocks(MIN_QUADRATURE_LOG2, 2, 2, 0)
    gaussian_blocks.cache_clear()
    np.testing.assert_array_equal(first, gaussian_blocks(MIN_QUADRATURE_LOG2, 2, 2, 0))
    assert not np.allclose(first, gaussian_blocks(MIN_QUADRATURE_LOG2, 2, 2, 1))


@pytest.mark.parametrize("halved", [False, True])
def test_blocks_have_one_shape_and_more_points_extend_the_sequence(halved):
    small = gaussian_blocks(MIN_QUADRATURE_LOG2, 3, 3, 5, halved)
    large = gaussian_blocks(MIN_QUADRATURE_LOG2 + 2, 3, 3, 5, halved)
    shape = (N_SCRAMBLES, 2**LOG2_BLOCK_SIZE // N_SCRAMBLES, 6)
    blocks = 1 if halved else 2
    assert small.shape == (blocks, *shape)
    assert large.shape == (4 * blocks, *shape)
    np.testing.assert_array_equal(small, large[:blocks])


@pytest.mark.parametrize("mirror", [(-1, -1), (1, -1)])
def test_half_of_the_points_and_their_mirror_images_are_all_of_them(mirror):
    half, whole = (gaussian_blocks(13, 2, 2, 0, halved).reshape(-1, 4) for halved in (True, False))
    images = half * np.repeat(mirror, 2)
    both = np.concatenate([half, images])
    np.testing.assert_array_equal(*(some[np.lexsort(some.T)] for some in (both, whole)))


@pytest.mark.parametrize(("student", "teacher"), [(1, 1), (2, 2), (4, 2), (9, 3)])
def test_images_make_odd_moments_vanish_and_points_are_normal(student, teacher):
    points = gaussian_blocks(14, student, teacher, 3)
    flat = points.reshape(-1, student + teacher)
    xi, y = flat[:, :student], flat[:, student:]
    np.testing.assert_allclose(flat.mean(axis=0), 0, atol=1e-13)
    np.testing.assert_allclose(xi.T @ y / len(flat), 0, atol=1e-13)
    np.testing.assert_allclose(xi.T @ xi / len(flat), np.eye(student), atol=0.02)
    assert np.all(np.isfinite(flat))


def test_scrambles_are_independent():
    points = gaussian_blocks(14, 2, 2, 0)
    means = np.mean(points[..., 0] ** 4, axis=(0, 2))
    assert np.unique(np.round(means, 12)).size == N_SCRAMBLES
    error = means.std(ddof=1) / np.sqrt(N_SCRAMBLES)
    assert abs(means.mean() - 3) < 5 * error
