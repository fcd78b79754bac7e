"""One step of replica symmetry breaking: its equations, its limits and its results."""

import numpy as np
import pytest

import dotphase as dp
from dotphase.numerics.fixed_point import Iteration
from dotphase.runtime.precision import in_double_precision
from dotphase.theory.fixed_point_map import StateEvolutionMap
from dotphase.theory.one_rsb.fixed_point_map import OneRSBMap, inner_rule
from dotphase.theory.one_rsb.state_evolution import (
    BrokenConjugates,
    BrokenOverlaps,
    broken_conjugates,
    broken_energy,
)
from dotphase.theory.point_evaluator import PointEvaluator, ProxWarmStart
from dotphase.theory.settings import SolverSettings
from dotphase.theory.state_evolution import conjugates, free_energy

SETTINGS = SolverSettings(log2_points=12)
#: Where breaking matters: a tenth of the overlap m.
ALPHA, BRANCH, INNER = 0.9, "positional", 9


def map_at(model, initial, parisi):
    symmetric = StateEvolutionMap.from_initial(model, ALPHA, initial)
    return OneRSBMap(model, ALPHA, symmetric.coordinates, symmetric.fixed, parisi, 400.0, INNER)


def with_clusters(symmetric, share):
    """Overlaps with clusters of this share of q."""
    q, m, V, theta = symmetric
    return BrokenOverlaps((1 - share) * q, q, m, V, theta, np.asarray(0.0))


@in_double_precision
def solved(model, initial, parisi):
    """A fixed point at a given y, and its averages."""
    broken_map = map_at(model, initial, parisi)
    evaluator = PointEvaluator(broken_map, SETTINGS, ProxWarmStart())
    iteration = Iteration(tolerance=1e-5, floor=1e-3, max_steps=80)
    point = evaluator.iterate(broken_map.pack(with_clusters(initial, 0.15)), 12, iteration)
    return broken_map, evaluator.evaluate(point.x, 12)


@pytest.fixture(scope="module")
def model():
    return dp.positional_semantic(omega=0.1)


@pytest.fixture(scope="module")
def symmetric(model):
    return dp.solve(model, ALPHA, BRANCH, log2_points=12)


@pytest.fixture(scope="module")
def broken(model, symmetric):
    return solved(model, symmetric.overlaps, 300.0)


@pytest.fixture(scope="module")
def result(model):
    return dp.solve(model, ALPHA, BRANCH, breaking=1, inner=INNER, log2_points=12)


@in_double_precision
def averages_at(model, overlaps, parisi):
    broken_map = map_at(model, overlaps.within, parisi)
    return averages_after_many_calls(broken_map, broken_map.pack(overlaps))


@in_double_precision
def averages_after_many_calls(fixed_point_map, x):
    """The averages after so many calls that every second minimum has been found."""
    warm_start = ProxWarmStart()
    for _ in range(12):
        point = PointEvaluator(fixed_point_map, SETTINGS, warm_start).evaluate(x, 12)
    return point.mean


def test_at_equal_overlaps_it_is_replica_symmetry(model, symmetric):
    """q1 = q0, any y: conjugates and free energy are those of state evolution."""
    same = with_clusters(symmetric.overlaps, 0.0)._replace(parisi=np.asarray(250.0))
    mean = averages_at(model, same, 250.0)
    hats = broken_conjugates(model, ALPHA, same, mean)
    plain = solve_plain(model, symmetric.overlaps)
    expected = conjugates(model, ALPHA, symmetric.overlaps, plain)
    for found in hats:
        for name in ("qhat", "mhat", "Vhat", "thetahat"):
            value = getattr(expected, name)
            size = np.abs(value).max() + 1e-12
            np.testing.assert_allclose(getattr(found, name), value, atol=2e-3 * size)
    energy, complexity = broken_energy(model, ALPHA, same, mean)
    assert energy == pytest.approx(
        float(free_energy(model, ALPHA, symmetric.overlaps, plain)), rel=1e-3
    )
    assert abs(complexity) < 1e-12


def solve_plain(model, overlaps):
    symmetric = StateEvolutionMap.from_initial(model, ALPHA, overlaps)
    return averages_after_many_calls(symmetric, symmetric.coordinates.pack(overlaps))


def test_at_small_y_it_is_replica_symmetry_with_q1(model, symmetric):
    broken_map, point = solved(model, symmetric.overlaps, 0.4)
    norms, expected = broken_map.norms(point.x), symmetric.norms
    assert norms["q1"] == pytest.approx(expected["q"], rel=0.03)
    assert norms["V"] == pytest.approx(expected["V"], rel=0.03)
    assert norms["q0"] < 0.95 * norms["q1"]


def test_the_free_energy_is_stationary_in_the_conjugates(model, broken):
    """Exactly: the overlaps of a fixed point solve the equations of its conjugates."""
    broken_map, point = broken
    overlaps, mean, y = point.overlaps, point.mean, broken_map.parisi
    hats = broken_conjugates(model, ALPHA, overlaps, mean)

    def energy(within, between):
        between = between._replace(Vhat=within.Vhat - y * (within.qhat - between.qhat))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                "dotphase.theory.one_rsb.state_evolution.broken_conjugates",
                lambda *_: BrokenConjugates(within, between),
            )
            return float(broken_energy(model, ALPHA, overlaps, mean)[0])

    def change(name, sides):
        values = []
        for step in (1.001, 0.999):
            parts = {side: getattr(hats, side) for side in ("within", "between")}
            for side in sides:
                scaled = {name: step * getattr(parts[side], name)}
                parts[side] = parts[side]._replace(**scaled)
            values.append(energy(parts["within"], parts["between"]))
        return (values[0] - values[1]) / 0.002

    both = ("within", "between")
    paired = float(np.sum(overlaps.m * hats.between.mhat))
    for name, sides in (
        ("qhat", ("within",)), ("qhat", ("between",)), ("Vhat", ("within",)), ("mhat", both),
    ):  # fmt: skip
        assert abs(change(name, sides)) < 3e-3 * paired, (name, sides)


def test_the_free_energy_is_stationary_in_the_overlaps(model, broken):
    """Within the noise of the points: they do not obey integration by parts one by one."""
    broken_map, point = broken
    hats = broken_conjugates(model, ALPHA, point.overlaps, point.mean)

    @in_double_precision
    def energies(overlaps):
        warm_start = ProxWarmStart({12: point.expectations.prox_states})
        evaluator = PointEvaluator(broken_map, SETTINGS, warm_start)
        per_scramble = evaluator.evaluate(broken_map.pack(overlaps), 12).expectations.per_scramble
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                "dotphase.theory.one_rsb.state_evolution.broken_conjugates", lambda *_: hats
            )
            return broken_energy(model, ALPHA, overlaps, per_scramble)[0]

    for name in ("q0", "q1", "m", "V"):
        value = np.asarray(getattr(point.overlaps, name))
        up, down = (
            energies(point.overlaps._replace(**{name: value * (1 + step)}))
            for step in (0.02, -0.02)
        )
        slope = (up - down) / 0.04
        error = np.std(slope, ddof=1) / np.sqrt(len(slope))
        assert abs(np.mean(slope)) < 4 * error + 2e-6, name


def test_complexity_is_the_derivative_of_the_free_energy(model, symmetric, broken):
    broken_map, point = broken
    values = []
    for parisi in (330.0, 270.0):
        moved_map, moved = solved(model, point.overlaps.within, parisi)
        values.append(moved_map.energies(moved.x, moved.expectations.per_scramble)[0])
    slope = 300.0**2 * (values[0] - values[1]) / 60.0
    error = np.std(slope, ddof=1) / np.sqrt(len(slope))
    complexity = float(broken_map.energies(point.x, point.mean)[1])
    assert abs(np.mean(slope) - complexity) < 4 * error


def test_matrices_and_numbers_agree(model, symmetric):
    """A student of rank two with an idle second column, and no coupling to it, is one of rank one:
    the algebra from averages to overlaps is that of matrices."""
    q, m, V, theta = (np.asarray(part) for part in symmetric.overlaps)
    mean = averages_at(
        model, with_clusters(symmetric.overlaps, 0.15)._replace(parisi=np.asarray(300.0)), 300.0
    )
    wide = model.replace(student_rank=2)
    rank_one = broken_conjugates(
        model,
        ALPHA,
        with_clusters(symmetric.overlaps, 0.15)._replace(parisi=np.asarray(300.0)),
        mean,
    )

    def square(value, corner):
        out = np.zeros((*value.shape[:-2], 2, 2))
        out[..., :1, :1], out[..., 1, 1] = value, corner
        return out

    def column(value):
        return np.concatenate([value, np.zeros_like(value)], axis=-1)

    def rows(value):
        return np.concatenate([value, np.zeros_like(value)], axis=-2)

    padded = mean._replace(
        g=column(mean.g),
        gg=square(mean.gg, 0.0),
        apart=square(mean.apart, 0.0),
        gy=rows(mean.gy),
        gw=square(mean.gw, 0.0),
    )
    overlaps = BrokenOverlaps(
        square(0.85 * q, 0.1), square(q, 0.1), column(m), square(V, 1.0), rows(theta),
        np.asarray(300.0),
    )  # fmt: skip
    found = broken_conjugates(wide, ALPHA, overlaps, padded)
    for side in ("within", "between"):
        for name in ("qhat", "Vhat"):
            big, small = (getattr(getattr(each, side), name) for each in (found, rank_one))
            np.testing.assert_allclose(big[:, :1, :1], small, rtol=1e-10)
            assert np.all(big[:, 0, 1] == 0)


@pytest.mark.parametrize(("dims", "count"), [(1, 8), (2, 36), (3, 64), (4, 128)])
def test_inner_points_have_the_moments_of_normal_variables(dims, count):
    points, weights = inner_rule(dims, count)
    assert weights.sum() == pytest.approx(1)
    np.testing.assert_allclose(points @ weights, 0, atol=1e-12)
    np.testing.assert_allclose((points * weights) @ points.T, np.eye(dims), atol=1e-10)


def test_results(result):
    assert result.on_branch
    assert result.parisi_range[0] <= result.parisi <= result.parisi_range[1]
    assert result.train_loss == pytest.approx(
        result.symmetric.free_energy + result.shift["train_loss"]
    )
    # Breaking raises the loss of the replica-symmetric solution, and opens the clusters.
    assert 2e-6 < result.shift["train_loss"] < 2e-5
    assert 0 < result.norms["q0"] < result.norms["q1"]
    assert 150 < result.parisi < 700
    assert -0.3 < result.shift["V"] / result.symmetric.norms["V"] < -0.1
    curve = result.curve
    top = int(np.argmax(curve.free_energy))
    assert np.all(curve.complexity[1:top] > 0)
    assert curve.complexity[-1] <= curve.complexity[1:].max()


def test_json_and_print(result):
    plain = result.to_dict()
    assert set(plain["overlaps"]) == {"q0", "q1", "m", "V", "theta"}
    assert set(plain["model_error"]) == {"train_loss", "test_error", "theta", "m"}
    for name in ("parisi", "complexity", "train_loss", "test_error", "stderr", "inner"):
        assert name in plain
    assert "from replica symmetry" in str(result)
    assert "9 inner ones" in str(result)


def test_without_jumps_nothing_is_broken(paper):
    found = dp.solve(paper, 2.0, "semantic", breaking=1, inner=INNER, log2_points=12)
    assert found.on_branch
    assert found.shift["train_loss"] == 0
    assert found.to_dict()["parisi"] is None
    assert "replica symmetric" in found.message


def test_a_branch_that_is_not_there(paper):
    found = dp.solve(paper, 0.05, "semantic", breaking=1, inner=INNER, log2_points=12)
    assert not found.on_branch
    assert np.isnan(found.shift["train_loss"])


@pytest.mark.parametrize(
    ("given", "field"), [({"breaking": 2}, "breaking"), ({"breaking": 1, "inner": 1}, "inner")]
)
def test_bad_input(paper, given, field):
    with pytest.raises(dp.InvalidInput, match=field):
        dp.solve(paper, 1.0, **given)


def test_estimate_of_the_model_error(result, symmetric):
    """Where breaking matters, the cheap estimate is of its size: within twice the scatter."""
    for name, factor in (("train_loss", 3), ("m", 5)):
        ratio = symmetric.model_error[name] / abs(result.shift[name])
        assert 1 / factor < ratio < factor, name
    assert symmetric.model_error["theta"] == 0
    assert not symmetric.stability.trusted
    assert "symmetry breaking)" in str(symmetric)
