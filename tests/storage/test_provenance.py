"""Descriptions of models in files tell different models apart, in every process alike."""

import numpy as np
import pytest

import dotphase as dp
from dotphase.model.named import MODELS
from dotphase.results import describe_model


@pytest.mark.parametrize("name", sorted(MODELS))
def test_descriptions_have_no_memory_address(name):
    assert "0x" not in str(describe_model(dp.load_model(name)))


def test_numbers_of_nested_functions_are_described():
    cold, warm = (dp.load_model("attention-temperature", teacher_beta=beta) for beta in (1.0, 2.0))
    assert describe_model(cold) != describe_model(warm)
    assert describe_model(cold)["teacher"].startswith("Mixture(attention=Attention(beta=1.0")


def test_descriptions_of_arrays_are_plain_numbers():
    description = describe_model(dp.positional_semantic(omega=0.2))
    assert description["teacher"].startswith("MixedTeacher(omega=0.2, mixing=[[0.6")
    assert np.shape(description["positions"]) == (4,)
