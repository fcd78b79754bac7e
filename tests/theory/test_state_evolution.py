"""One step of state evolution, against closed forms and against itself."""

import equinox as eqx
import jax
import numpy as np
import pytest
from jax.extend.core import jaxprs_in_params

import dotphase as dp
from app_tools import wait_for
from dotphase.numerics.quadrature import N_SCRAMBLES
from dotphase.theory.branches import BRANCHES
from dotphase.theory.coordinates import Coordinates
from dotphase.theory.expectations import (
    AverageQuery,
    Evaluator,
    Mirror,
    ResponseQuery,
    device_blocks,
)
from dotphase.theory.overlaps import Overlaps
from dotphase.theory.responses import mean_responses
from dotphase.theory.state_evolution import (
    conjugates,
    draw_fields,
    force_averages,
    free_energy,
    fresh_track,
    next_overlaps,
)
from models import ridge_regression


def _overlaps(q, m, V, theta):
    return Overlaps(
        np.full((2, 1, 1), q), np.array([[m], [-m]]), np.full((2, 1, 1), V),
        np.full((2, 1, 1), theta),
    )  # fmt: skip


def test_fields_have_the_covariances_of_the_overlaps():
    model = dp.Model(
        teacher=dp.softmax_attention, student=dp.softmax_attention, length=2, teacher_rank=2,
        student_rank=2, sigma=[0.5, 0.8], positions=np.eye(2),
    )  # fmt: skip
    q = np.array([[[0.3, 0.1], [0.1, 0.2]], [[0.5, -0.1], [-0.1, 0.4]]])
    theta = np.array([[[0.1, 0.05], [0.0, 0.1]], [[0.2, 0.0], [0.1, 0.3]]])
    m = np.array([[0.3, -0.2], [0.1, 0.4]])
    overlaps = Overlaps(q, m, q, theta)
    points = device_blocks(14, 4, 4, 0)
    seen = []
    for block in points:
        fields = eqx.filter_jit(draw_fields)(model, overlaps, block)
        omega = np.asarray(fields.omega).reshape(2, 2, -1)
        seen.append((omega, np.asarray(fields.target)))
    omega = np.concatenate([one for one, _ in seen], axis=-1)
    np.testing.assert_allclose(omega.mean(axis=-1), m, atol=1e-12)
    centred = omega - m[..., None]
    covariance = np.einsum("lin,ljn->lij", centred, centred) / centred.shape[-1]
    np.testing.assert_allclose(covariance, q, atol=2e-3)
    # The teacher's fields enter through softmax(h h^T): its mean must be that of tokens with
    # variance sigma^2 I, whatever the overlaps are.
    h = np.random.default_rng(0).normal(size=(200_000, 2, 2)) * np.array([0.5, 0.8])[:, None]
    expected = np.asarray(jax.jit(jax.vmap(dp.softmax_attention))(h)).mean(axis=0)
    target = np.concatenate([two for _, two in seen], axis=-1).mean(axis=-1)
    np.testing.assert_allclose(target, expected, atol=3e-3)


def test_ridge_regression_has_its_closed_form_conjugates():
    """With a linear student the force is g = (h* - omega)/(1 + V)."""
    model = ridge_regression()
    q, V, theta, alpha = 0.5, 3.0, 0.4, 1.7
    overlaps = Overlaps(
        np.full((1, 1, 1), q), np.zeros((1, 1)), np.full((1, 1, 1), V), np.full((1, 1, 1), theta)
    )
    mean = AverageQuery(Evaluator(model), overlaps, 16, 0).alone().mean
    hats = conjugates(model, alpha, overlaps, mean)
    np.testing.assert_allclose(hats.Vhat, alpha / (1 + V), rtol=1e-3)
    np.testing.assert_allclose(hats.thetahat, alpha / (1 + V), rtol=1e-3)
    np.testing.assert_allclose(hats.qhat, alpha * (1 - 2 * theta + q) / (1 + V) ** 2, rtol=1e-3)


@pytest.mark.parametrize("point", [(0.11, 0.0, 12.0, 0.15), (0.05, 0.26, 11.0, 0.0)])
def test_the_free_energy_is_stationary_at_a_fixed_point(paper, point):
    """Its slope in every parameter is proportional to the residual of state evolution."""
    alpha = 2.0
    branch = "semantic" if point[3] else "positional"
    solution = dp.solve(
        paper, alpha, branch, log2_points=14, iteration=dp.Iteration(tolerance=1e-7)
    )
    evaluator = Evaluator(paper)

    def energy(overlaps):
        mean = AverageQuery(evaluator, overlaps, 14, 0).alone().mean
        return free_energy(paper, alpha, overlaps, mean)

    here = energy(solution.overlaps)
    np.testing.assert_allclose(here, solution.train_loss, rtol=1e-4)
    for part in Overlaps._fields:
        value = getattr(solution.overlaps, part)
        moved = [
            energy(solution.overlaps._replace(**{part: value * (1 + step)}))
            for step in (-0.03, 0.03)
        ]
        slope = abs(moved[1] - moved[0]) / 0.06
        assert slope < 2e-2 * here, part


def test_next_overlaps_keep_the_relations_between_tokens(paper):
    overlaps = _overlaps(0.1, 0.2, 10.0, 0.05)
    mean = AverageQuery(Evaluator(paper), overlaps, 12, 0).alone().mean
    new = next_overlaps(paper, conjugates(paper, 1.5, overlaps, mean))
    np.testing.assert_allclose(new.q[0], new.q[1])
    np.testing.assert_allclose(new.m[0], -new.m[1])
    np.testing.assert_allclose(new.V[0], new.V[1])


def test_scrambles_average_to_the_mean(paper):
    answer = AverageQuery(Evaluator(paper), _overlaps(0.1, 0.2, 10.0, 0.05), 13, 0).alone()
    assert answer.averages.loss.shape == (N_SCRAMBLES,)
    np.testing.assert_allclose(answer.mean.loss, answer.averages.loss.mean())


def test_lanes_agree_with_single_queries():
    models = [dp.positional_semantic(omega=omega, ridge=0.01 + omega) for omega in (0.1, 0.3, 0.6)]
    points = [_overlaps(0.1, 0.0, 12.0, 0.15), _overlaps(0.05, 0.25, 11.0, 0.0),
              _overlaps(0.08, 0.0, 18.0, 0.02)]  # fmt: skip
    queries = [
        AverageQuery(Evaluator(model), point, 12, 0)
        for model, point in zip(models, points, strict=True)
    ]
    assert len({query.group for query in queries}) == 1
    answers = AverageQuery.together(queries, 3)
    asked = [
        ResponseQuery(query.evaluator, query.overlaps, 12, 0, answer.tracks)
        for query, answer in zip(queries, answers, strict=True)
    ]
    responses = ResponseQuery.together(asked, 3)
    for query, answer, question, response in zip(queries, answers, asked, responses, strict=True):
        for one, other in zip(answer.averages, query.alone().averages, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9)
        for one, other in zip(*map(jax.tree.leaves, (response, question.alone())), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9)


def test_a_lane_with_nan_leaves_the_others_alone(paper):
    good = AverageQuery(Evaluator(paper), _overlaps(0.1, 0.0, 12.0, 0.15), 12, 0)
    bad = AverageQuery(Evaluator(paper), _overlaps(np.nan, 0.0, 12.0, 0.15), 12, 0)
    answers = AverageQuery.together([good, bad], 3)  # the third is filled up
    assert np.all(np.isnan(answers[1].averages.test))
    np.testing.assert_allclose(answers[0].mean.test, good.alone().mean.test, rtol=1e-9)


@pytest.mark.parametrize(
    ("point", "mirror", "odd"),
    [
        ((0.1, 0.0, 12.0, 0.15), Mirror.BOTH, "g"),
        ((0.05, 0.25, 11.0, 0.0), Mirror.TEACHER, "gy"),
    ],
)
def test_what_is_left_out_by_symmetry_would_say_the_same(paper, point, mirror, odd):
    overlaps = _overlaps(*point)
    query = AverageQuery(Evaluator(paper), overlaps, 12, 0)
    assert query.mirror is mirror
    (block,) = device_blocks(12, 2, 2, 0, True)
    student = -1.0 if mirror is Mirror.BOTH else 1.0
    answer = query.alone()
    response = ResponseQuery(query.evaluator, overlaps, 12, 0, answer.tracks)
    each, slopes = [], []
    averages_at, responses_at = map(eqx.filter_jit, (force_averages, mean_responses))
    for points in (block, block * np.array([[student], [student], [-1.0], [-1.0]])):
        track = eqx.filter_jit(fresh_track)(paper, overlaps, points)
        values, track = averages_at(paper, overlaps, points, track, np.int32(0))
        each.append({name: np.asarray(part) for name, part in values._asdict().items()})
        asked = (paper, overlaps, points, track, response.evaluator.directions)
        slopes.append(responses_at(*asked).slopes)
    for found, one, other in zip(response.alone().slopes, *slopes, strict=True):
        np.testing.assert_allclose(found, (one + other) / 2, rtol=1e-5, atol=1e-7)
    averages = answer.averages._asdict()
    for name, value in each[0].items():
        sign = -1 if name == odd else 1
        np.testing.assert_allclose(value, sign * each[1][name], rtol=1e-6, atol=1e-9)
        expected = 0 * value if name == odd else value
        np.testing.assert_allclose(averages[name], expected, rtol=1e-6, atol=1e-9)


def test_responses_are_compiled_beside_the_averages():
    model = ridge_regression().replace(student=lambda h: h[:, :1])
    one = np.full((1, 1, 1), 0.5)
    query = AverageQuery(Evaluator(model), Overlaps(one, np.zeros((1, 1)), one, one), 12, 0)
    respond = query.evaluator.compiled.respond
    assert respond.untouched
    answer = query.alone()
    assert not respond.untouched
    wait_for(lambda: respond._ready, "the responses")
    # For the arguments with which it is then called: nothing is compiled again.
    ResponseQuery(query.evaluator, query.overlaps, 12, 0, answer.tracks).alone()
    assert respond._function._cache_size() == 1


def test_without_a_symmetry_no_point_is_left_out(paper):
    whole = AverageQuery(Evaluator(paper), _overlaps(0.08, 0.1, 18.0, 0.02), 12, 0)
    one = np.full((1, 1, 1), 0.5)
    linear = Overlaps(one, np.zeros((1, 1)), one, one)
    for query in (whole, AverageQuery(Evaluator(ridge_regression()), linear, 12, 0)):
        assert not query.halved


def test_more_points_start_where_fewer_have_been_left(paper):
    overlaps = _overlaps(0.1, 0.0, 12.0, 0.15)
    evaluator = Evaluator(paper)
    few = AverageQuery(evaluator, overlaps, 12, 0).alone()
    many = AverageQuery(evaluator, overlaps, 13, 0, few.tracks, 1).alone()
    fresh = AverageQuery(evaluator, overlaps, 13, 0, (), 1).alone()
    assert len(many.tracks) == 2 * len(few.tracks)
    np.testing.assert_allclose(many.mean.loss, fresh.mean.loss, rtol=1e-6)


LAPACK = ("cholesky", "lu", "triangular_solve", "householder_product", "svd")


def _primitives(jaxpr):
    for equation in jaxpr.eqns:
        yield equation.primitive.name
        for inner in jaxprs_in_params(equation.params):
            yield from _primitives(inner)


def _linear(h):
    return h @ h.T


@pytest.mark.parametrize("student, rank", [(dp.softmax_attention, 1), (_linear, 2)])
def test_averages_and_responses_call_no_lapack(student, rank):
    # Two batched calls in one program can wait for each other for ever (`_numerics.linalg`).
    model = dp.positional_semantic_length(6 // rank).replace(student=student, student_rank=rank)
    overlaps = BRANCHES["semantic"].start(model)
    dims = model.length * (model.student_rank + model.teacher_rank)
    points = np.ones((dims, 4 * N_SCRAMBLES))

    def both(overlaps, points):
        track = fresh_track(model, overlaps, points)
        _, track = force_averages(model, overlaps, points, track, 0)
        along = Coordinates.of(model).directions
        return mean_responses(model, overlaps, points, track, along)

    # Whose rows are eliminated in a loop instead.
    names = set(_primitives(jax.make_jaxpr(both)(overlaps, points).jaxpr))
    assert "while" in names
    assert not names & set(LAPACK)
