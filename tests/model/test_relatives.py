"""Relatives of a model."""

from __future__ import annotations

import numpy as np
import pytest

import dotphase as dp
from dotphase.model.attention import untied_attention


def test_replace_keeps_the_rest(three_tokens):
    spectrum = dp.Spectrum([1.0, 3.0])
    other = three_tokens.replace(ridge=0.1, spectrum=spectrum)
    assert other.ridge == 0.1 and other.spectrum is spectrum
    assert other.teacher is three_tokens.teacher and other.student_rank == 2
    np.testing.assert_array_equal(other.sigma, three_tokens.sigma)
    np.testing.assert_array_equal(other.positions, three_tokens.positions)
    assert three_tokens.ridge == 0.02 and three_tokens.spectrum is None


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"ridge": -1.0}, "ridge"),
        ({"sigma": [0.5, 0.5]}, "sigma"),
        ({"positions": [[1.0]]}, "positions"),
        ({"student": lambda h: h}, "student"),
        ({"length": 2}, "sigma"),
    ],
)
def test_replace_checks_as_the_constructor_does(three_tokens, changes, field):
    with pytest.raises(dp.InvalidInput) as caught:
        three_tokens.replace(**changes)
    assert caught.value.field == field
    with pytest.raises(dp.InvalidInput, match=r"colour = 'red': is no part of a Model: teacher"):
        three_tokens.replace(colour="red")


def test_the_family_of_the_paper():
    model = dp.positional_semantic(length=3, untied=True, student_rank=2)
    assert model.student is untied_attention and model.length == 3 and model.student_rank == 4
    assert dp.positional_semantic(length=4, kinds=4, student_rank=3).student_rank == 3
    own = np.full((3, 3), 1 / 3)
    np.testing.assert_array_equal(dp.positional_semantic(mixing=own, length=3).teacher.mixing, own)
    for mixing in ("other", [[0.6, 0.4], [0.4, 0.6]]):
        with pytest.raises(dp.InvalidInput, match="mixing"):
            dp.positional_semantic(length=3, mixing=mixing)
