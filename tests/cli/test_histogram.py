"""`dotphase histogram`, on few sequences."""

import json

import numpy as np
import pytest

from dotphase.cli.main import _run

FEW = ["histogram", "--samples", "100", "--epochs", "2", "--runs", "1", "--json"]


def test_everything_in_one_command(capsys, tmp_path):
    out, weights = tmp_path / "out", tmp_path / "weights"
    code = _run([*FEW, "--out", str(out), "--weights", str(weights), "--sequence", "BBCCDDBBBB",
                 "--release", "--release-epochs", "1", "--landscape", "--emergence", "70",
                 "--emergence-steps", "6"])  # fmt: skip
    printed, err = capsys.readouterr()
    assert code == 0 and err == ""
    result = json.loads(printed)
    assert set(result["summary"]) == {"semantic", "positional"}
    for shown in result["summary"].values():
        assert 0 <= shown["accuracy"]["mean"] <= 1 and shown["accuracy"]["std"] is None
        assert shown["distance_after_release"]["mean"] < shown["distance_from_start"]["mean"]
        assert shown["distance_summed_from_start"]["mean"] > shown["distance_from_start"]["mean"]
    assert result["summary"]["positional"]["positional_score"]["mean"] == 1
    assert [row["mechanism"] for row in result["sequences"]] == ["semantic", "positional"]
    for row in result["sequences"]:
        assert row["sequence"] == "BBCCDDBBBB" and len(row["counts"]) == 10
        np.testing.assert_allclose(np.sum(row["attention"], axis=1), 1, rtol=1e-5)
    assert result["seconds_per_epoch"] > 0 and result["landscape"]["distance"] > 0
    assert result["emergence"]["samples"] == [70]
    names = {path.name for path in out.iterdir()}
    assert names == {"histogram.nc", "attention.png", "curves.png", "distances.png",
                     "landscape.png", "emergence.nc", "emergence.png"}  # fmt: skip
    assert {path.name for path in weights.iterdir()} == {"semantic.npz", "positional.npz"}
    assert set(result["files"].values()) == {str(p) for d in (out, weights) for p in d.iterdir()}


def test_interrupted_and_started_again(capsys, tmp_path, monkeypatch):
    def interrupt(self, event):
        raise KeyboardInterrupt

    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert _run([*FEW, "--out", str(whole)]) == 0
    expected = json.loads(capsys.readouterr().out)
    with monkeypatch.context() as patch:
        patch.setattr("dotphase.cli.output.ProgressBar.__call__", interrupt)
        assert _run([*FEW, "--out", str(broken)]) == 130
    out, err = capsys.readouterr()
    assert "interrupted after 1 epochs" in err
    assert json.loads(out)["runs_done"][0]["epochs"] == 1
    assert (broken / "training.checkpoint.npz").exists()
    assert _run([*FEW, "--out", str(broken), "--seed", "1"]) == 2
    assert "seed: 0 stored, 1 requested" in capsys.readouterr().err
    assert _run([*FEW, "--out", str(broken)]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["runs_done"] == expected["runs_done"]
    assert not (broken / "training.checkpoint.npz").exists()


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["--sequence", "BBCCDDBBBZ"], ["--sequence", "BBCCDDBBBZ", "10 letters from A to O"]),
        (["--sequence", "BBCCDD"], ["--sequence", "BBCCDD", "10 letters"]),
        (["--mechanism", "both ways"], ["--mechanism", "both ways"]),
        (["--runs", "0"], ["--runs", "0"]),
        (["--epochs", "0"], ["--epochs", "0"]),
        (["--target", "1.1"], ["--target", "1.1", "<= 1"]),
        (["--mechanism", "semantic", "--landscape"], ["mechanism", "both"]),
        (["--emergence", "10,x"], ["--emergence", "10,x"]),
        (["--out", "no/such"], ["--out", "no/such"]),
        (["--samples", "3"], ["--samples", "3"]),
    ],
)
def test_bad_input_is_one_line_and_nothing_written(arguments, parts, refused):
    assert refused(["histogram", *arguments], parts)
