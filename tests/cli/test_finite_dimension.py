"""The commands `train` and `amp`."""

from __future__ import annotations

import json

import click
import pytest
from click.testing import CliRunner

from dotphase.cli.commands import amp, train


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
    with pytest.raises(click.BadParameter, match="1: must be a whole number >= 2"):
        run(train.command, "--d", "1", "--alpha", "1")
