"""`dotphase wide`."""

import json

from click.testing import CliRunner

import dotphase as dp
from dotphase.cli.main import _run, cli

CASE = ["--rho", "0.5"]


def test_the_command_prints_the_solution(monkeypatch):
    solutions = []
    solve = dp.wide.solve

    def record(**arguments):
        assert arguments == {"alpha": 0.2, "rho": 0.5, "ridge": 0.2, "omega": 0.3, "length": 2}
        solutions.append(solve(**arguments))
        return solutions[-1]

    monkeypatch.setattr("dotphase.wide.solve", record)
    call = ["wide", "--alpha", "0.2", *CASE, "--ridge", "0.2", "--omega", "0.3", "--json"]
    printed = json.loads(CliRunner().invoke(cli, call).stdout)
    for name in ("q", "m", "V", "trace", "rank", "shift", "train_loss", "test_error"):
        assert printed[name] == getattr(solutions[0], name) and name in printed["stderr"]
    assert printed["converged"] is True


def test_the_bayes_line():
    call = ["wide", "--alpha", "0.02", *CASE, "--length", "4", "--bayes", "--json"]
    printed = json.loads(CliRunner().invoke(cli, call).stdout)
    assert printed["mmse"] == dp.wide.bayes(alpha=0.02, rho=0.5, length=4).mmse
    assert printed["q"] == 1.5 - printed["mmse"] and set(printed["stderr"]) == {"mmse", "q"}


def test_exit_codes(capsys, monkeypatch):
    assert _run(["wide", "--alpha", "0.7", *CASE, "--length", "4"]) == 2
    assert capsys.readouterr().err.strip().endswith("must be an integer >= 1 and <= 3")
    assert _run(["wide", "--alpha", "0.7", *CASE, "--bayes", "--omega", "0.3"]) == 2
    impatient = dp.Iteration(max_steps=1)
    monkeypatch.setattr("dotphase.extensive.solve.ITERATION", impatient)
    assert _run(["wide", "--alpha", "0.7", *CASE, "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["converged"] is False
