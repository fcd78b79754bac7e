"""Training of wide students, beside the theory."""

import numpy as np
import pytest

import dotphase as dp
import dotphase.extensive.curves
import dotphase.extensive.training
from result_checks import assert_is_a_result


@pytest.fixture(scope="module")
def comparison():
    """A comparison, and the students in it."""
    runs = []

    def record(**arguments):
        assert arguments.pop("alpha") == 0.7 and arguments.pop("seed") == 0
        assert arguments == {"d": 24, "seeds": 2, "rho": 0.5, "ridge": 0.1}
        runs.append(dp.wide.train(alpha=0.7, **arguments))
        return runs[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dotphase.extensive.curves.train", record)
        return dp.wide.compare([0.7], d=24, seeds=2, rho=0.5, ridge=0.1), runs[0]


@pytest.fixture(scope="module")
def runs(comparison):
    return comparison[1]


def test_students_agree_with_the_theory(comparison, runs):
    """Terms of order 1/d remain, and the norm of two teachers."""
    theory = comparison[0].sel(source="theory", alpha=0.7)
    assert all(runs.converged)
    for name, tolerance in {
        "train_loss": 0.08,
        "test_error": 0.15,
        "trace": 0.08,
        "rank": 0.08,
    }.items():
        assert runs.mean[name] == pytest.approx(float(theory[name]), rel=tolerance), name
    assert np.allclose(np.sum(runs.eigenvalues**2, axis=1) / 24, runs.q)


def test_the_shift_is_trained_with_positions_only():
    case = {"alpha": 0.7, "rho": 0.5, "ridge": 1.0, "omega": 0.9, "d": 24, "seeds": 1}
    with_positions = dp.wide.train(**case)
    assert with_positions.shift[0] == pytest.approx(np.log(0.59 / 0.41), abs=0.08)
    again, other = dp.wide.train(**case, seed=0), dp.wide.train(**case, seed=1)
    assert with_positions.shift[0] == again.shift[0] != other.shift[0]


def test_students_that_have_not_converged_are_reported(runs, monkeypatch):
    assert "NOT CONVERGED" not in str(runs)
    monkeypatch.setattr(dotphase.extensive.training, "MAX_ITERATIONS", 3)
    both = dp.wide.compare([0.7], d=8, seeds=2, rho=0.5, ridge=0.1)
    assert both["converged"].sel(alpha=0.7).values.tolist() == [True, False]
    short = dp.wide.train(alpha=0.7, rho=0.5, ridge=0.1, d=8, seeds=2)
    assert "NOT CONVERGED (2 of 2)" in str(short)


@pytest.mark.parametrize("change", [{"length": 1}, {"d": 1}])
def test_a_comparison_is_refused_before_the_curve_is_solved(change, monkeypatch):
    monkeypatch.delattr(dotphase.extensive.curves, "curve")
    arguments = {"d": 8, "rho": 0.5, "ridge": 0.1} | change
    with pytest.raises(dp.InvalidInput, match=next(iter(change))):
        dp.wide.compare([0.7], **arguments)


def test_it_is_a_result(runs, tmp_path):
    assert_is_a_result(runs, tmp_path)


def test_comparison_has_theory_and_the_students(comparison, runs):
    both = comparison[0]
    theory, training = (both.sel(source=name) for name in ("theory", "training"))
    assert float(theory["test_error"][0]) == pytest.approx(0.0259543, abs=1e-6)
    assert float(training["train_loss"][0]) == pytest.approx(runs.mean["train_loss"], rel=1e-12)
    assert both["q"].attrs["long_name"] == "tr S^2/d"
    assert both.attrs["onset"] == dp.wide.onset(rho=0.5, ridge=0.1)


def test_bad_input_is_named():
    with pytest.raises(dp.InvalidInput, match="length = 1"):
        dp.wide.train(alpha=0.7, rho=0.5, ridge=0.1, d=16, length=1)
    with pytest.raises(dp.InvalidInput, match="sentences = "):
        dp.wide.train(alpha=1e6, rho=0.5, ridge=0.1, d=2000)
    with pytest.raises(dp.InvalidInput, match="seeds = 1"):
        dp.wide.compare([0.2], d=16, seeds=1, rho=0.5, ridge=0.1)
