"""Averages over Gaussian fields: scrambles, mirror symmetries, warm starts, compilation."""

import equinox as eqx
import numpy as np
import pytest

from app_tools import wait_for
from dotphase.numerics.quadrature import N_SCRAMBLES
from dotphase.theory.expectations import (
    Evaluator,
    Mirror,
    device_blocks,
    evaluator_of,
    join_columns,
    split_columns,
)
from dotphase.theory.overlaps import Overlaps
from dotphase.theory.responses import mean_responses
from dotphase.theory.state_evolution import force_averages, initial_prox_state
from models import ridge_regression


def _overlaps(q, m, V, theta):
    return Overlaps(
        np.full((2, 1, 1), q), np.array([[m], [-m]]), np.full((2, 1, 1), V),
        np.full((2, 1, 1), theta),
    )  # fmt: skip


def test_scrambles_average_to_the_mean(paper):
    expectations = Evaluator(paper).expectations(_overlaps(0.1, 0.2, 10.0, 0.05), 13, 0)
    assert expectations.per_scramble.loss.shape == (N_SCRAMBLES,)
    np.testing.assert_allclose(expectations.mean.loss, expectations.per_scramble.loss.mean())


def test_overlaps_that_are_no_numbers_have_averages_that_are_none(paper):
    expectations = Evaluator(paper).expectations(_overlaps(np.nan, 0.0, 12.0, 0.15), 12, 0)
    assert np.all(np.isnan(expectations.per_scramble.test))


@pytest.mark.parametrize(
    ("point", "mirror", "odd"),
    [
        ((0.1, 0.0, 12.0, 0.15), Mirror.BOTH, "g"),
        ((0.05, 0.25, 11.0, 0.0), Mirror.TEACHER, "gy"),
    ],
)
def test_points_that_a_mirror_leaves_out_have_the_same_averages(paper, point, mirror, odd):
    overlaps, evaluator = _overlaps(*point), Evaluator(paper)
    assert evaluator.mirror(overlaps) is mirror
    (block,) = device_blocks(12, 2, 2, 0, True)
    student = -1.0 if mirror is Mirror.BOTH else 1.0
    expectations = evaluator.expectations(overlaps, 12, 0)
    responses = evaluator.responses(overlaps, 12, 0, expectations.prox_states)
    averages, slopes = [], []
    averages_at, responses_at = map(eqx.filter_jit, (force_averages, mean_responses))
    for points in (block, block * np.array([[student], [student], [-1.0], [-1.0]])):
        state = eqx.filter_jit(initial_prox_state)(paper, overlaps, points)
        values, state = averages_at(paper, overlaps, points, state, np.int32(0))
        averages.append({name: np.asarray(part) for name, part in values._asdict().items()})
        slopes.append(responses_at(paper, overlaps, points, state, evaluator.directions).slopes)
    for slope, one, other in zip(responses.slopes, *slopes, strict=True):
        np.testing.assert_allclose(slope, (one + other) / 2, rtol=1e-5, atol=1e-7)
    per_scramble = expectations.per_scramble._asdict()
    for name, value in averages[0].items():
        sign = -1 if name == odd else 1
        np.testing.assert_allclose(value, sign * averages[1][name], rtol=1e-6, atol=1e-9)
        expected = 0 * value if name == odd else value
        np.testing.assert_allclose(per_scramble[name], expected, rtol=1e-6, atol=1e-9)


def test_responses_are_compiled_beside_the_averages():
    model = ridge_regression().replace(student=lambda h: h[:, :1])
    half = np.full((1, 1, 1), 0.5)
    overlaps, evaluator = Overlaps(half, np.zeros((1, 1)), half, half), Evaluator(model)
    respond = evaluator.compiled_responses
    assert respond.untouched
    expectations = evaluator.expectations(overlaps, 12, 0)
    assert not respond.untouched
    wait_for(lambda: respond._ready, "the responses")
    # For the arguments with which it is then called: nothing is compiled again.
    evaluator.responses(overlaps, 12, 0, expectations.prox_states)
    assert respond._function._cache_size() == 1


def test_without_a_symmetry_all_points_are_used(paper):
    half = np.full((1, 1, 1), 0.5)
    linear = Overlaps(half, np.zeros((1, 1)), half, half)
    for model, overlaps in (
        (paper, _overlaps(0.08, 0.1, 18.0, 0.02)),
        (ridge_regression(), linear),
    ):
        evaluator = Evaluator(model)
        assert evaluator.mirror(overlaps) is None
        points = sum(block.shape[-1] for block in evaluator.blocks(overlaps, 12, 0))
        assert points == 2**12


def test_a_mirror_halves_the_points(paper):
    blocks = Evaluator(paper).blocks(_overlaps(0.1, 0.0, 12.0, 0.15), 13, 0)
    assert sum(block.shape[-1] for block in blocks) == 2**12


def test_averages_on_more_points_start_from_the_states_of_fewer(paper):
    overlaps, evaluator = _overlaps(0.1, 0.0, 12.0, 0.15), Evaluator(paper)
    few = evaluator.expectations(overlaps, 12, 0)
    many = evaluator.expectations(overlaps, 13, 0, few.prox_states, 1)
    fresh = evaluator.expectations(overlaps, 13, 0, (), 1)
    assert len(many.prox_states) == 2 * len(few.prox_states)
    np.testing.assert_allclose(many.mean.loss, fresh.mean.loss, rtol=1e-6)


def test_columns_are_joined_and_split(rng):
    parts = [rng.normal(size=(N_SCRAMBLES, *shape)) for shape in ((2, 3), (), (4,))]
    for part, again in zip(parts, split_columns(join_columns(parts), [(2, 3), (), (4,)]),
                           strict=True):  # fmt: skip
        np.testing.assert_allclose(again, part)


def test_models_of_one_structure_share_compiled_functions(paper):
    same, other = Evaluator(paper.replace(ridge=0.3)), Evaluator(ridge_regression())
    evaluator = evaluator_of(paper)
    assert evaluator_of(paper) is evaluator
    assert same.averages is evaluator.averages and other.averages is not evaluator.averages
