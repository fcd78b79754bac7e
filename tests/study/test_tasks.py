"""Each task of a study gives what the function behind it gives."""

from __future__ import annotations

from dataclasses import fields

import pytest

import dotphase as dp
from dotphase.gamp.settings import AmpSettings
from dotphase.study.tasks import TASKS, compute_point
from dotphase.theory.settings import SolverSettings
from dotphase.training.settings import TrainingSettings


@pytest.mark.parametrize(
    ("task", "given"),
    [
        ("theory", {"alpha": 1.5, "log2_points": 12}),
        ("train", {"alpha": 2.0, "d": 24, "held_out": 256}),
        ("amp", {"alpha": 2.0, "d": 24, "held_out": 256, "iterations": 3}),
        ("critical", {"log2_points": 12, "alpha_min": 0.8, "alpha_max": 2.0}),
        ("bayes", {"alpha": 0.45}),
        ("regression", {"alpha": 1.0, "log2_points": 14}),
        ("online", {"alpha": 2.0, "lr": 4.0}),
        ("wide", {"alpha": 0.7, "rho": 0.5}),
    ],
)
def test_a_point_is_what_the_function_gives(task, given):
    outcome = compute_point(**dp.Study(task, given, seeds=[3]).arguments(0))
    assert outcome.reason is None
    values = outcome.values
    assert list(values) == list(TASKS[task].results)
    model = dp.positional_semantic()
    if task == "theory":
        expected = dp.solve(model, 1.5, log2_points=12, seed=3)
        assert values["train_loss"] == expected.train_loss and values["theta"] > 0
        assert values["theta_stderr"] == expected.stderr["theta"]
    elif task == "bayes":
        assert values["overlap"] == pytest.approx(0.786, abs=6e-4)
        assert values["test_error"] == dp.bayes.optimal(model, 0.45, seed=3).test_error
    elif task == "regression":
        assert values["V_exact"] * (1 + values["V_exact"]) == pytest.approx(100)
        assert abs(values["V"] - values["V_exact"]) < 4 * values["V_stderr"]
    elif task == "online":
        expected = dp.online(model, 2.0, 4.0, "semantic", seed=3)
        assert values["theta"] == expected.theta[-1]
        assert (values["semantic"], values["exit_alpha"]) == (1.0, 0.0)
    elif task == "wide":
        expected = dp.wide.solve(alpha=0.7, rho=0.5, ridge=0.1)
        assert values["train_loss"] == expected.train_loss
    elif task == "critical":
        expected = dp.critical(model, log2_points=12, alpha_min=0.8, alpha_max=2.0, seed=3)
        assert values["alpha_c"] == expected.alpha_c
        assert 1.15 < values["alpha_c"] < 1.35
    else:
        call = dp.train if task == "train" else dp.amp
        rest = {"held_out": 256} | ({"iterations": 3} if task == "amp" else {})
        expected = call(model, 2.0, 24, seeds=1, seed=3, **rest).runs[0]
        for name, value in values.items():
            assert value == getattr(expected, name), name


def test_what_goes_wrong_is_told_in_one_line():
    study = dp.Study("train", {"alpha": 1.0, "d": 10, "lr": 0.1}, seeds=5)
    outcome = compute_point(**study.arguments(4))
    assert outcome.index == 4 and outcome.values is None
    assert outcome.reason == "lr = 0.1: must not be given: lbfgs chooses its own steps"


@pytest.mark.parametrize(
    ("task", "settings", "elsewhere"),
    [
        ("theory", SolverSettings(), {"seed", "iteration", "max_seconds"}),
        ("train", TrainingSettings(), {"seed", "runs_per_batch"}),
        ("amp", AmpSettings(), {"seed"}),
    ],
)
def test_parameters_are_the_settings_of_the_function(task, settings, elsewhere):
    """The tables are read without JAX, so that they cannot be made from the settings."""
    defaults = {one.name: getattr(settings, one.name) for one in fields(settings)}
    table = {name: one.default for name, one in TASKS[task].parameters.items()}
    assert elsewhere <= defaults.keys() and not elsewhere & table.keys()
    assert table == table | {n: value for n, value in defaults.items() if n not in elsewhere}
    assert table.keys() - defaults.keys() <= {"alpha", "d", "start", "branch", "first_index"}
