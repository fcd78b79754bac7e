import numpy as np
import pytest

import dotphase as dp
from dotphase.model.paper import kind_mixing, kind_positions


def test_two_tokens_are_the_paper(paper):
    model = dp.positional_semantic_length(2, omega=0.3)
    np.testing.assert_array_equal(model.teacher.mixing, paper.teacher.mixing)
    np.testing.assert_array_equal(model.positions, paper.positions)
    assert model.student is paper.student and model.teacher.omega == paper.teacher.omega


@pytest.mark.parametrize("length", [3, 4, 7])
def test_rank_one_represents_two_kinds(length):
    """Scores +-log(1.5)/2 along one line give the positional part of the teacher exactly."""
    line = np.sqrt(np.log(1.5) / 2) * (-1.0) ** np.arange(length)
    scores = np.outer(line, line)
    attention = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(attention, kind_mixing(length), rtol=1e-12)
    np.testing.assert_array_equal(np.outer(line, line) > 0, kind_positions(length) > 0)


@pytest.mark.parametrize(("length", "kinds"), [(3, 3), (6, 3), (5, 5)])
def test_more_kinds_are_a_simplex(length, kinds):
    gram = kind_positions(length, kinds)
    np.testing.assert_allclose(gram[:kinds, :kinds].sum(axis=1), 0, atol=1e-12)
    assert np.linalg.matrix_rank(gram) == kinds - 1
    mixing = dp.positional_semantic_length(length, kinds=kinds).teacher.mixing
    np.testing.assert_allclose(mixing.sum(axis=1), 1)
    assert mixing[0, 0] / mixing[0, 1] == pytest.approx(1.5)
    scores = np.log(mixing / mixing[:, :1])
    assert np.linalg.matrix_rank(scores - scores.mean(axis=1, keepdims=True)) == kinds - 1


@pytest.mark.parametrize(("given", "field"), [({"length": 1}, "length"), ({"kinds": 4}, "kinds")])
def test_bad_input(given, field):
    with pytest.raises(dp.InvalidInput, match=field):
        dp.positional_semantic_length(**({"length": 3} | given))
