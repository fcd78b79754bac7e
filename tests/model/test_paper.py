import json

import jax
import numpy as np
import pytest

import dotphase as dp
from dotphase.model.mixing import read_mixing
from dotphase.model.paper import MixedTeacher


@pytest.mark.parametrize(("tokens", "rank"), [(1, 1), (2, 1), (2, 3), (4, 2), (7, 2)])
def test_attention_is_the_softmax_of_the_scores(tokens, rank, rng):
    h = rng.normal(size=(tokens, rank)) * 3
    expected = jax.nn.softmax(h @ h.T, axis=-1)
    np.testing.assert_allclose(dp.softmax_attention(h), expected, rtol=1e-12, atol=1e-300)


def test_attention_survives_huge_scores():
    h = np.array([[300.0], [-200.0]])
    np.testing.assert_allclose(dp.softmax_attention(h), np.eye(2), atol=1e-12)
    assert np.all(np.isfinite(jax.jacrev(dp.softmax_attention)(h)))


def test_teacher_mixes_attention_and_positions(rng):
    h = rng.normal(size=(2, 1))
    matrix = np.array([[0.3, 0.7], [0.8, 0.2]])
    mixed = MixedTeacher(np.asarray(0.25), matrix)(h)
    expected = 0.75 * dp.softmax_attention(h) + 0.25 * matrix
    np.testing.assert_allclose(mixed, expected, rtol=1e-14)


def test_mixing_by_name_array_and_file(tmp_path):
    np.testing.assert_array_equal(read_mixing("other"), [[0.3, 0.7], [0.8, 0.2]])
    np.testing.assert_array_equal(read_mixing(np.eye(2)), np.eye(2))
    file = tmp_path / "mixing.json"
    file.write_text(json.dumps([[0.9, 0.1], [0.5, 0.5]]))
    np.testing.assert_array_equal(read_mixing(str(file)), [[0.9, 0.1], [0.5, 0.5]])


@pytest.mark.parametrize(
    "content",
    ["[[0.6, 0.5], [0.4, 0.6]]", "[[1.2, -0.2], [0, 1]]", "[[1, 0]]", "{}", "nonsense",
     "[[1, 0, 0], [0, 1, 0], [0, 0, 1]]", "[[NaN, 1], [0, 1]]", '[["a", 1], [0, 1]]'],
)  # fmt: skip
def test_bad_mixing_files_are_refused(content, tmp_path):
    file = tmp_path / "mixing.json"
    file.write_text(content)
    with pytest.raises(ValueError, match=r"^mixing = ") as caught:
        dp.positional_semantic(mixing=str(file))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("mixing", ["strange", "absent.json", 3])
def test_unknown_mixings_are_refused(mixing):
    with pytest.raises(ValueError, match=r"^mixing = "):
        dp.positional_semantic(mixing=mixing)


@pytest.mark.parametrize(
    ("change", "field"),
    [({"omega": -0.1}, "omega"), ({"omega": 1.1}, "omega"), ({"omega": float("nan")}, "omega"),
     ({"sigma": 0}, "sigma"), ({"ridge": -1}, "ridge"), ({"student_rank": 0}, "student_rank")],
)  # fmt: skip
def test_bad_parameters_are_refused(change, field):
    with pytest.raises(ValueError, match=f"^{field} = "):
        dp.positional_semantic(**change)
