"""The commands `train` and `amp`."""

from __future__ import annotations

import json

import click
import numpy as np
import pytest
import xarray as xr
from click.testing import CliRunner

import dotphase as dp
from dotphase.cli.commands import amp, compare, train


def run(command, *arguments):
    result = CliRunner().invoke(command, list(arguments), standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result


def test_train_prints_one_json_object():
    result = run(train.command, "--d", "200", "--alpha", "2", "--seeds", "2", "--json")
    assert result.return_value == 0
    plain = json.loads(result.stdout)
    fields = {"train_loss", "test_error", "m", "theta", "q", "linear_test_error", "gradient_norm"}
    assert fields <= set(plain["mean"])
    assert fields <= set(plain["stderr"])
    assert len(plain["runs"]) == 2
    assert plain["seconds"] > 0


def test_train_that_does_not_converge_exits_with_three():
    arguments = ["--d", "200", "--alpha", "2", "--seeds", "2", "--steps", "2"]
    result = run(train.command, *arguments)
    assert result.return_value == 3
    assert "2 of 2: all steps were taken" in result.stdout
    assert "2 runs: 2 semantic" in result.stdout
    assert "theory at d = 200: " in result.stdout


def test_runs_are_printed_if_their_theory_is_interrupted(monkeypatch):
    def stopped(runs):
        raise KeyboardInterrupt

    monkeypatch.setattr("dotphase.experiments.comparison.with_theory.with_theory", stopped)
    arguments = ["--d", "200", "--alpha", "2", "--seeds", "2", "--steps", "2"]
    result = run(train.command, *arguments)
    assert result.return_value == 130
    assert "2 runs: 2 semantic" in result.stdout and "after 2 of 2 runs" in result.stderr


def test_prescribed_steps_are_no_failure_and_can_be_saved(tmp_path):
    out = tmp_path / "runs.nc"
    arguments = ["--d", "200", "--alpha", "2", "--seeds", "2", "--steps", "2", "--json"]
    result = run(train.command, *arguments, "--optimizer", "gd", "--out", str(out))
    assert result.return_value == 0
    plain = json.loads(result.stdout)
    assert plain["converged"] is False
    assert plain["mechanisms"]["semantic"]["runs"] == 2 and "theory" not in plain
    with xr.open_dataset(out) as dataset:
        assert dataset["train_loss"].attrs["long_name"] == "training loss per dimension"
        found = [row["train_loss"] for row in plain["runs"]]
        np.testing.assert_allclose(dataset["train_loss"], found)


def test_amp_prints_one_json_object(tmp_path):
    figure = tmp_path / "iterations.png"
    result = run(
        amp.command, "--d", "200", "--alpha", "2", "--json", "--iterations", "4", "--plot",
        str(figure),
    )  # fmt: skip
    assert result.return_value == 3
    plain = json.loads(result.stdout)
    assert {"measured", "predicted", "iteration", "stderr"} == set(plain["iterations"][0])
    assert "overlap_with_trained" in plain["runs"][0]
    assert figure.stat().st_size > 1000


def test_bad_input_names_the_field():
    with pytest.raises(click.BadParameter, match="1: must be an integer >= 2"):
        run(train.command, "--d", "1", "--alpha", "1")


SMALL = ("--alphas", "2", "--d", "24", "--seeds", "2", "--branches", "semantic")


def test_compare_prints_numbers_by_source_and_a_verdict(tmp_path):
    out = tmp_path / "both.nc"
    arguments = [*SMALL, "--log2-points", "12"]
    result = run(compare.command, *arguments, "--json", "--out", str(out))
    values = json.loads(result.stdout)
    assert result.return_value == 0 and values["theory_name"] == "state_evolution"
    assert values["omega"] == 0.3 and values["out"] == str(out) and values["d"] == 24
    with xr.open_dataset(out) as dataset:
        for source in ("theory", "training"):
            row = dataset.sel(source=source)
            shown = (values[source]["theta"], values[source]["stderr"]["m"])  # None for NaN
            for value, expected in zip(shown, (row["theta"], row["m_stderr"]), strict=True):
                np.testing.assert_allclose(np.asarray(value, float), expected)
        assert values["verdict"] == dataset["verdict"].values.tolist()
        loss = dataset["train_loss"].sel(source="training").item()
    table = run(compare.command, *arguments).stdout
    assert "state evolution and training at d = 24" in table
    assert f"{loss:.6f}(" in table and values["verdict"][0][0] in table


def test_compare_with_the_dynamics_takes_the_same_steps():
    steps = ["--theory", "dynamics", "--steps", "3", "--lr", "2", "--ensemble", "8"]
    values = json.loads(run(compare.command, *SMALL, *steps, "--json").stdout)
    assert values["theory_name"] == "dynamics"
    assert np.shape(values["theory"]["theta"]) == np.shape(values["training"]["theta"]) == (1, 1)


def test_compare_with_one_pass_takes_its_learning_rate(monkeypatch):
    def record(*arguments, **options):
        assert (options["theory"], options["branches"]) == ("one_pass", ["random"])
        assert options["lr"] == 2.0 and "log2_points" not in options
        raise RuntimeError("called")

    monkeypatch.setattr("dotphase.compare", record)
    arguments = [*SMALL, "--theory", "one_pass", "--branches", "random", "--lr", "2"]
    with pytest.raises(RuntimeError, match="called"):
        run(compare.command, *arguments)
    for refused in (["--steps", "3"], ["--points", "12"]):
        with pytest.raises(dp.InvalidInput, match="one_pass"):
            run(compare.command, *arguments, *refused)
