"""State evolution of wide attention: reference rows, closed forms, bad input."""

import csv
from pathlib import Path

import numpy as np
import pytest

import dotphase as dp
import dotphase.extensive.score_channel
import dotphase.extensive.solve
from dotphase.extensive.score_channel import ScoreChannel, rules, score_map
from dotphase.extensive.spectral_density import Overlaps
from result_checks import assert_is_a_result

REFERENCE = Path(__file__).resolve().parents[1] / "reference" / "extensive.csv"
#: Names of columns that differ from those of the solution.
RENAMED = {"u": "shift"}
COLUMNS = ("q", "m", "V", "trace", "rank", "train_loss", "test_error", "u")
#: (case, tokens, omega, alpha, rho, ridge) of the rows that are solved here, and their tolerance.
POINTS = [
    ("erm", "2", "0.0", "0.1", "0.5", "0.1", 1e-5),
    ("erm", "3", "0.0", "0.2", "0.5", "0.1", 3e-3),
    ("onset", "2", "0.0", "0.09", "0.5", "0.2", 1e-5),
    ("positional shift", "2", "0.3", "0.06", "0.5", "0.2", 1e-5),
    ("positional shift", "2", "0.3", "0.02", "0.5", "0.002", 1e-5),
    ("positional shift", "2", "0.3", "1.0", "0.5", "0.3", 1e-5),
    ("matrix sensing y=h", "1", "0", "0.35987", "0.3", "0.001", 1e-5),
    ("erm near recovery", "2", "0.0", "0.232196", "0.5", "0.0001", 1e-5),
]


def rows():
    with REFERENCE.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def coarse_rule(length):
    rule = rules(length, False)[0]
    every = slice(None, None, 16)
    return rule._replace(points=rule.points[:, every], weights=rule.weights[every])


@pytest.fixture(scope="module")
def solution():
    return dp.wide.solve(alpha=0.3, rho=0.5, ridge=0.2)


@pytest.mark.parametrize("point", POINTS, ids=lambda point: "-".join(point[:-1]))
def test_rows_of_the_prototype(point):
    *key, tolerance = point
    names = ("case", "L", "omega", "alpha", "rho", "lambda")
    (row,) = (row for row in rows() if [row[name] for name in names] == key)
    numbers = [float(text) for text in key[2:]]
    options = dict(zip(("omega", "alpha", "rho", "ridge"), numbers, strict=True))
    length = int(key[1])
    solution = dp.wide.solve(**options, length=length)
    assert solution.converged
    for column in filter(row.get, COLUMNS):
        expected = pytest.approx(float(row[column]), rel=tolerance, abs=1e-12)
        assert getattr(solution, RENAMED.get(column, column)) == expected, column
    if solution.omega == 0:
        best = dp.wide.bayes(alpha=solution.alpha, rho=solution.rho, length=length)
        assert 1 + solution.rho - 2 * solution.m + solution.q > best.mmse


def test_onsets_of_the_prototype():
    onsets = [row for row in rows() if row["case"].startswith("alpha_c")][::6]
    assert len(onsets) == 5
    for row in onsets:
        arguments = {"rho": float(row["rho"]), "ridge": float(row["lambda"])}
        onset = dp.wide.onset(**arguments, omega=float(row["omega"]))
        assert onset == pytest.approx(float(row["alpha"]), rel=1e-5)


def test_the_student_is_empty_below_its_onset_only():
    omega = 0.3
    arguments = {"rho": 0.5, "ridge": 0.2, "omega": omega}
    alpha = dp.wide.onset(**arguments)
    below = dp.wide.solve(alpha=0.999 * alpha, **arguments)
    above = dp.wide.solve(alpha=1.02 * alpha, **arguments)
    assert below.converged and above.converged
    assert below.q == below.rank == 0 < above.rank < 0.01
    assert above.test_error < below.test_error
    # The best positional scores have the mean attention: logit(.7/2 + .3 * .6) at omega = .3.
    mean = (1 - omega) / 2 + 0.6 * omega
    assert below.shift == pytest.approx(np.log(mean / (1 - mean)), abs=1e-6)


def test_recovery_thresholds():
    for row in rows():
        rho = float(row["rho"])
        if row["case"].startswith("nuclear"):
            threshold = dp.wide.recovery(rho=rho, length=int(row["L"])).ridge
            assert threshold == pytest.approx(float(row["alpha"]), rel=1e-5)
    assert dp.wide.recovery(rho=0.5, length=1).bayes == 0.5 - 0.5**2 / 2
    assert dp.wide.recovery(rho=0.5, length=3).bayes == pytest.approx(0.375 / 5)
    assert dp.wide.recovery(rho=3.0, length=2) == pytest.approx((0.25, 0.25))


def test_a_quadratic_network_recovers_its_teacher_beyond_the_threshold():
    """Beyond it the error falls as the square of the ridge, below it saturates."""
    threshold = dp.wide.recovery(rho=0.3, length=1).ridge
    errors = [
        [dp.wide.solve(alpha=scale * threshold, rho=0.3, ridge=ridge, length=1).test_error
         for ridge in (1e-3, 1e-4)] for scale in (0.9, 1.2)
    ]  # fmt: skip
    assert errors[0][1] > 0.5 * errors[0][0] and errors[1][1] < 0.02 * errors[1][0]


def test_the_spectrum_has_the_rank_and_the_trace(solution):
    eigenvalues, density = solution.spectrum()
    assert np.trapezoid(density, eigenvalues) == pytest.approx(solution.rank, rel=1e-3)
    assert np.trapezoid(density * eigenvalues, eigenvalues) == pytest.approx(
        solution.trace, rel=1e-3
    )


@pytest.mark.parametrize("length", [2, 3])
def test_scores_have_the_covariance_of_their_differences(length):
    logits, direction = score_map(length)
    # Two scores of a row share no field: variances 2 (own) and 1 (other).
    first, second = (logits[a, a] - logits[a, 1 - a] for a in (0, 1))
    assert first @ first == pytest.approx(3.0) and first @ second == pytest.approx(1.0)
    shift = logits @ direction
    assert shift[0, 0] - shift[0, 1] == pytest.approx(1.0)


@pytest.mark.parametrize("length", [2, 3])
def test_slopes_are_derivatives_and_proximal_points_stationary(length):
    channel = ScoreChannel(length, 0.3, 1.5, coarse_rule(length))
    X = channel.sources(Overlaps(0.8, 0.6, 1.0, shift=0.2))
    gradient, hessian = channel.slopes(X)
    step = 1e-6 * np.eye(channel.k)[:, :, None]
    for axis in range(channel.k):
        up, down = X + step[axis], X - step[axis]
        slope = (channel.loss(up) - channel.loss(down)) / 2e-6
        np.testing.assert_allclose(gradient[axis], slope, atol=1e-8)
        change = (channel.slopes(up)[0] - channel.slopes(down)[0]) / 2e-6
        np.testing.assert_allclose(hessian[axis], change, atol=1e-7)
    for V in (1.0, 300.0):
        overlaps = Overlaps(0.8, 0.6, V, shift=0.2)
        channel.last = None
        channel.averages(overlaps)
        force = channel.last - channel.sources(overlaps) + V * channel.slopes(channel.last)[0]
        assert np.mean(abs(force) > 1e-8 * V) < 1e-3


def test_it_is_a_result(solution, tmp_path):
    assert_is_a_result(solution, tmp_path)


@pytest.mark.parametrize(
    ("name", "value"),
    [("alpha", 0.0), ("rho", -1.0), ("ridge", 0.0), ("length", 4), ("omega", 1.0), ("alpha", "x")],
)
def test_bad_input_is_named(name, value):
    arguments = {"alpha": 0.7, "rho": 0.5, "ridge": 0.1, name: value}
    with pytest.raises(dp.InvalidInput) as caught:
        dp.wide.solve(**arguments)
    assert caught.value.field == name


def test_unsettled_proximal_points_are_not_hidden(monkeypatch):
    case = {"alpha": 0.3, "rho": 0.5, "ridge": 0.2}
    channel = ScoreChannel(2, 0.3, 1.5, coarse_rule(2))
    assert channel.averages(Overlaps(0.8, 0.6, 1.0)).unsettled == 0
    monkeypatch.setattr(dotphase.extensive.score_channel, "MAX_NEWTON", 0)
    channel.last = None
    unsettled = channel.averages(Overlaps(0.8, 0.6, 1.0)).unsettled
    assert unsettled > dotphase.extensive.solve.MAX_UNSETTLED
    monkeypatch.undo()
    monkeypatch.setattr(dotphase.extensive.solve, "MAX_UNSETTLED", 0.0)
    assert not dp.wide.solve(**case).converged


def test_the_text_has_errors_and_the_side_of_the_onset(solution):
    lines = str(solution).splitlines()
    assert all("±" in line for line in lines[1:] if "shift" not in line and "onset" not in line)
    assert "semantic" in lines[-1]
    below = dp.wide.solve(alpha=0.01, rho=0.5, ridge=0.2)
    assert "below the onset" in str(below)
    assert "± " in str(dp.wide.bayes(alpha=0.1, rho=0.5))
