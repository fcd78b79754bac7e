import jax.numpy as jnp
import numpy as np
import pytest

import dotphase as dp
from dotphase.model import channels
from dotphase.model.latent import Latent
from dotphase.model.symmetry import sign_symmetries
from dotphase.theory.branches import BRANCHES
from dotphase.theory.coordinates import Coordinates
from dotphase.theory.overlaps import Overlaps
from models import softmax, three_tokens


def test_pack_and_unpack_are_inverse():
    model = dp.positional_semantic(student_rank=2)
    coordinates = Coordinates.of(model)
    rng = np.random.default_rng(0)
    vector = rng.normal(size=coordinates.pack(BRANCHES["mixed"].initial_overlaps(model)).size)
    np.testing.assert_allclose(coordinates.pack(coordinates.unpack(vector)), vector, atol=1e-14)


def test_positional_modes_span_the_range_of_the_gram_matrix(paper):
    assert Coordinates.of(paper).basis.shape == (2, 1)
    assert Coordinates.of(three_tokens()).basis.shape == (3, 3)


@pytest.mark.parametrize(
    ("branch", "free"),
    [("semantic", 3), ("positional", 3), ("uninformed", 2)],
)
def test_symmetries_fix_the_other_mechanism_at_zero(paper, branch, free):
    coordinates = Coordinates.of(paper)
    start = coordinates.pack(BRANCHES[branch].initial_overlaps(paper))
    fixed = coordinates.fixed_at_zero(start)
    assert np.sum(~fixed) == free
    np.testing.assert_array_equal(start[fixed], 0)


def test_mixed_columns_do_not_mix():
    model = dp.positional_semantic(student_rank=2)
    coordinates = Coordinates.of(model)
    start = BRANCHES["mixed"].initial_overlaps(model)
    fixed = coordinates.fixed_at_zero(coordinates.pack(start))
    # W and R diagonal, theta of column 1 only, m of column 2 only.
    assert np.sum(~fixed) == 6


def test_a_teacher_that_depends_on_signs_fixes_nothing():
    def teacher(h):
        return softmax(h) + 0.1 * jnp.tanh(h @ jnp.ones((1, 2)))

    model = dp.Model(teacher=teacher, student=softmax, length=2, positions=np.eye(2))
    assert np.array_equal(sign_symmetries(teacher, 2, 1), [[1.0]])
    assert np.array_equal(sign_symmetries(softmax, 2, 1), [[1.0], [-1.0]])
    coordinates = Coordinates.of(model)
    fixed = coordinates.fixed_at_zero(
        coordinates.pack(BRANCHES["positional"].initial_overlaps(model))
    )
    assert not np.any(fixed)


def test_the_part_of_w_along_what_is_known_changes_as_its_length_does(rng):
    """Q in the plane of Q* and of a direction that leans towards it: its length is known."""
    lean, side = 0.5, 1.2
    latent = Latent([[[1.0]]], gram=[[lean**2 + side**2]], teacher=[[lean]])
    model = dp.Model(lambda h, a: h[0, 0], loss=channels.squared, sigma=1.0, latent=latent)
    place, step = rng.normal(size=(2, 2))

    def overlaps(c):
        theta, m = c[0], lean * c[0] + side * c[1]
        one = np.ones((1, 1, 1))
        return Overlaps(q=c @ c * one, m=m * one[0], V=one, theta=theta * one)

    coordinates = Coordinates.of(model)
    x, moved = (coordinates.pack(overlaps(c)) for c in (place, place + step))
    aligned = coordinates.part("theta") | coordinates.part("m")
    change = coordinates.parallel_weight_gradient(x) @ (moved - x)[aligned]
    assert change == pytest.approx(2 * place @ step)
