"""A user's own model on every command, and what is refused about it."""

from __future__ import annotations

import errno
import json
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import dotphase as dp
from dotphase.cli.main import _run

FILE = Path(__file__).parents[1] / "my_models.py"
THREE = ["--model", f"{FILE}:three_tokens", "--set", "weight=0.2"]
TWO = ["--model", f"{FILE}:two_tokens", "--set", "weight=0.2"]
FAST = ["--log2-points", "12"]


def answer(capsys, *arguments):
    code = _run([*arguments, "--json"])
    out, err = capsys.readouterr()
    assert code in (0, 3), err
    return json.loads(out)


def test_a_model_that_closes_its_output_does_not_end_the_command(capsys):
    assert _run(["solve", "--alpha", "2", "--model", f"{FILE}:closes", *FAST, "--json"]) == 0
    out, _ = capsys.readouterr()
    assert json.loads(out)["found"] == "semantic" and not sys.stderr.closed


def test_what_a_model_prints_is_not_in_the_json(capsys):
    code = _run(["solve", "--alpha", "2", "--model", f"{FILE}:prints", *FAST, "--json"])
    out, err = capsys.readouterr()
    assert code == 0 and json.loads(out)["converged"] and "defined" in err


def test_a_closed_pipe_is_not_an_exit_of_the_model(capsys, monkeypatch):
    def closed(*_, **__):
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr("dotphase.read_status", closed)
    for name in ("stdout", "stderr"):  # click replaces both
        monkeypatch.setattr(sys, name, getattr(sys, name))
    assert _run(["study", "status", "folder"]) == 2
    assert capsys.readouterr().err == "dotphase: the output cannot be written (Broken pipe)\n"


@pytest.fixture(scope="module")
def model():
    return dp.load_model(f"{FILE}:two_tokens", weight=0.2)


def test_solve(capsys):
    model = dp.load_model(f"{FILE}:three_tokens", weight=0.2)
    found = answer(capsys, "solve", "--alpha", "2", *THREE, *FAST)
    assert np.shape(found["overlaps"]["theta"]) == (3, 1, 1)
    assert found["train_loss"] == dp.solve(model, 2.0, log2_points=12).train_loss


def test_curve_and_diagram(capsys, tmp_path, model):
    out = str(tmp_path / "c.nc")
    found = answer(capsys, "curve", "--alphas", "1.5:2:2", "--out", out, *TWO, *FAST)
    expected = dp.solve(model, 2.0, log2_points=12).train_loss
    assert found["train_loss"][0][1] == pytest.approx(expected, rel=1e-3)
    arguments = ["diagram", "--alphas", "1.5:2:2", "--parameter", "ridge", "--values",
                 "0.01:0.02:2", "--out", out, *FAST, *TWO]  # fmt: skip
    found = answer(capsys, *arguments)
    assert found["parameter"] == "ridge" and found["values"] == [0.01, 0.02]
    with xr.open_dataset(out) as dataset:
        assert dict(dataset.sizes) == {"branch": 2, "ridge": 2, "alpha": 2}


def test_critical(capsys):
    search = ["--alpha-min", "0.5", "--alpha-max", "3", "--no-limits"]
    found = answer(capsys, "critical", *TWO, *FAST, *search)
    assert "omega" not in found and found["model"].endswith("my_models.py:two_tokens")
    expected = {"weight": 0.2, "ridge": 0.01, "rank": 1, "wide": False}
    assert found["parameters"] == expected
    assert {"alpha_c", "alpha_l", "trusted"} <= set(found)
    assert found["stability_loss"] == found["branch_end"] == {}


def test_train_and_amp(capsys, model):
    size = ["--d", "24", "--alpha", "2", "--seeds", "1", "--held-out", "256"]
    found = answer(capsys, "train", *size, *TWO)
    run = dp.train(model, 2.0, 24, seeds=1, held_out=256).runs[0]
    assert found["runs"][0]["train_loss"] == run.train_loss
    found = answer(capsys, "amp", *size, "--iterations", "3", *TWO)
    assert found["runs"][0]["iterations"] == 3


def test_a_study_of_the_model(capsys, tmp_path, model):
    models = tmp_path / "models.py"
    models.write_text(FILE.read_text())
    spec, out = tmp_path / "spec.toml", tmp_path / "s"
    spec.write_text(
        'task = "theory"\nmodel = "models.py:two_tokens"\n'
        "[fixed]\nlog2_points = 12\nalpha = 2.0\n[sweep]\nweight = [0.1, 0.2]\n"
    )
    arguments = ["study", "run", str(spec), "--out", str(out), "--workers", "1"]
    assert answer(capsys, *arguments)["done"] == 2
    with xr.open_dataset(out / "study.nc") as dataset:
        expected = dp.solve(model, 2.0, log2_points=12).train_loss
        np.testing.assert_allclose(dataset["train_loss"].sel(weight=0.2), expected, rtol=1e-6)
    # Looking at it runs no file; going on with another text is refused.
    models.write_text("raise SystemExit('this file must not be run')")
    assert _run(["study", "status", str(out)]) == 0
    assert "theory study, finished: 2 of 2" in capsys.readouterr().out
    assert _run(arguments) == 2
    models.write_text(FILE.read_text() + "\n# another text\n")
    capsys.readouterr()
    assert _run(arguments) == 2
    err = capsys.readouterr().err
    assert "another configuration (model_text" in err and err.count("\n") == 1


def test_a_named_model(capsys):
    arguments = ["--model", "ridge-regression", "--set", "ridge=0.1"]
    found = answer(capsys, "solve", "--alpha", "1", *arguments, *FAST)
    exact = dp.analysis.ridge_regression(1.0, 0.1)
    assert found["norms"]["V"] == pytest.approx(exact["V"], rel=0.05)


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["--model", "absent.py:one"], ["model", "absent.py:one", "no such file"]),
        (
            ["--model", f"{FILE}:absent"],
            ["model", "no such name", "three_tokens, two_tokens, fixed"],
        ),
        (["--model", "strange"], ["model", "strange", "positional-semantic"]),
        (["--model", f"{FILE}:number"], ["model", "not int"]),
        (["--model", f"{FILE}:fails"], ["model", "raised RuntimeError: cannot make nothing"]),
        (["--model", f"{FILE}:wrong"], ["model", "must return a Model"]),
        (["--model", f"{FILE}:needs"], ["size", "must be given"]),
        ([*THREE, "--omega", "0.2"], ["--omega", "0.2", "--set omega="]),
        ([*THREE, "--untied"], ["--untied", "must not be used with --model"]),
        ([*THREE, "--set", "ridge"], ["set", "ridge", "name=value"]),
        ([*THREE, "--set", "rigde=0.1"], ["set", "rigde", "did you mean ridge"]),
        ([*THREE, "--set", "weight=0.3"], ["set", "weight", "twice"]),
        ([*THREE, "--set", "ridge=little"], ["ridge", "little", "finite number"]),
        ([*THREE, "--set", "ridge=-1"], ["ridge", "-1", "> 0"]),
        ([*THREE, "--set", "rank=1.5"], ["rank", "1.5", "integer"]),
        ([*THREE, "--set", "wide=perhaps"], ["wide", "perhaps", "true or false"]),
        (["--set", "omega=0.1"], ["set", "omega=0.1", "--model"]),
    ],
)
@pytest.mark.parametrize(
    "command", [["solve", "--alpha", "1"], ["curve", "--alphas", "1:2:2", "--out", "c.nc"]]
)
def test_bad_models_are_one_line_and_exit_two(command, arguments, parts, refused):
    assert refused([*command, *arguments], parts)


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ([], ["omegas", "--parameter and --values"]),
        (["--parameter", "weight"], ["omegas"]),
        (["--omegas", "0:1:2", "--parameter", "weight"], ["omegas", "must not be used"]),
        (["--omegas", "0:1:2"], ["parameter", "omega", "is not a parameter of the model"]),
        (["--parameter", "wieght", "--values", "0:1:2"], ["did you mean weight"]),
        (["--parameter", "wide", "--values", "0:1:2"], ["wide", "must be a number"]),
        (["--parameter", "rank", "--values", "1:1.5:2"], ["rank", "1.5", "integer"]),
    ],
)
def test_bad_second_axes(arguments, parts, refused):
    assert refused(["diagram", "--alphas", "1:2:2", "--out", "d.nc", *THREE, *arguments], parts)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ('model = "absent.py:one"', ["model", "no such file"]),
        ('model = "models.py:absent"', ["model", "no such name"]),
        ("model = 3", ["model", "3"]),
        ('model = "models.py:three_tokens"\n[fixed]\nomega = 0.1', ["fixed.omega", "weight"]),
        ('model = "models.py:clash"', ["model", "must not have a parameter alpha"]),
    ],
)
def test_bad_models_of_studies(text, parts, refused, tmp_path):
    (tmp_path / "models.py").write_text(FILE.read_text() + "\ndef clash(alpha: float = 1.0): ...\n")
    (tmp_path / "spec.toml").write_text(f'task = "theory"\n{text}\n[sweep]\nalpha = [1.0]\n')
    assert refused(["study", "run", "spec.toml", "--out", "s"], parts)


def test_settings_of_a_study_on_the_command_line(tmp_path):
    from dotphase.study.spec import read_spec

    spec = tmp_path / "spec.toml"
    spec.write_text('task = "critical"\n[fixed]\nlog2_points = 12\n[sweep]\nridge = [0.1]\n')
    study = read_spec(spec, f"{FILE}:three_tokens", ["weight=0.4", "wide=true"])
    assert study.fixed["weight"] == 0.4 and study.fixed["wide"] is True
    assert study.task == "critical" and study.fixed["log2_points"] == 12
    with pytest.raises(dp.InvalidInput, match="must not be fixed"):
        read_spec(spec, f"{FILE}:three_tokens", ["ridge=0.4"])
