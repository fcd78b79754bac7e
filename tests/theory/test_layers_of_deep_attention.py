"""Branches and starts of deep attention: which layer is learned, and which one sees positions."""

import jax
import numpy as np
import pytest

import dotphase as dp
from dotphase.finite_d.initialization import start_components
from dotphase.model.symmetry import positional_column
from dotphase.theory.branch_survey import possible_branches
from dotphase.theory.branches import BRANCHES


@pytest.fixture(scope="module")
def deep():
    return dp.load_model("deep-attention", layers=3, omega=0.3)


@pytest.mark.parametrize(("name", "column"), [("first_layer", 0), ("last_layer", 2)])
def test_one_layer_is_aligned_with_the_teacher(deep, name, column):
    overlaps = BRANCHES[name].initial_overlaps(deep)
    aligned = np.zeros(3)
    aligned[column] = 1
    assert (np.diag(overlaps.theta[0]) > 0).tolist() == (aligned > 0).tolist()
    assert not overlaps.m.any()
    limit = start_components(deep, name)
    np.testing.assert_array_equal(limit.theta, np.diag(aligned))
    # At finite d the same columns are those of the teacher.
    start = dp.custom_training.resolve_start(deep, name)
    teacher, positions = np.ones((8, 3)), np.zeros((2, 8))
    weights = np.asarray(start(jax.random.key(0), teacher, positions))
    assert (weights == teacher).all(axis=0).tolist() == (aligned > 0).tolist()


def test_positions_act_on_the_last_layer_and_on_the_first_column_of_others(deep):
    assert positional_column(deep) == 2
    assert positional_column(dp.load_model("deep-attention", output="product")) == 0
    assert positional_column(dp.positional_semantic(student_rank=2)) == 0
    assert BRANCHES["positional"].initial_overlaps(deep).m.any(axis=0).tolist() == [0, 0, 1]
    limit = start_components(deep, "positional")
    assert limit.m.any(axis=1).tolist() == [0, 0, 1]
    assert np.diag(limit.orthogonal)[2] == 0 < np.diag(limit.orthogonal)[:2].min()


def test_a_mixed_start_has_the_positions_in_the_last_layer(deep):
    limit = start_components(deep, "mixed")
    np.testing.assert_array_equal(limit.theta, np.diag([1, 1, 0]))
    np.testing.assert_array_equal(np.diag(limit.orthogonal), 0)
    assert limit.m.any(axis=1).tolist() == [0, 0, 1]
    start = dp.custom_training.resolve_start(deep, "mixed")
    teacher, positions = np.ones((8, 3)), np.stack([np.ones(8), -np.ones(8)]) / np.sqrt(8)
    weights = np.asarray(start(jax.random.key(0), teacher, positions))
    np.testing.assert_array_equal(weights[:, :2], 1)
    np.testing.assert_allclose(weights[:, 2], positions[0])


def test_other_models_do_not_have_branches_of_layers(paper):
    for start in ("first_layer", "last_layer"):
        assert start not in possible_branches(paper)
        for run, sizes in (
            (dp.solve, {}),
            (dp.train, {"d": 20}),
            (dp.dynamics, {"steps": 2, "lr": 0.1}),
        ):
            with pytest.raises(dp.InvalidInput, match="needs deep attention"):
                run(paper, 2.0, start=start, **sizes)
