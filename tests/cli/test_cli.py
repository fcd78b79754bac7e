"""The command line, in process; two runs in processes of their own where that matters."""

import json
import os
import re
import signal
import subprocess
import sys
import threading

import click
import numpy as np
import pytest
import xarray as xr

from app_tools import wait_for
from dotphase.cli import compiling, main
from dotphase.cli.commands import COMMANDS
from dotphase.cli.main import _open_streams, _run
from dotphase.cli.output import INNER_STAGE, ProgressBar, echo, progress_bar
from dotphase.runtime.progress import ProgressEvent
from dotphase.training.run import STEPS

FAST = ["--log2-points", "12"]


def test_solve_prints_one_json_object(capsys):
    code = _run(["solve", "--alpha", "2", "--branch", "semantic", "--json", *FAST])
    out, err = capsys.readouterr()
    assert code == 0 and err == ""
    result = json.loads(out)
    expected = {"alpha", "branch", "found", "overlaps", "norms", "train_loss", "test_error",
                "linear_test_error", "residual", "iterations", "converged", "stability",
                "stderr", "model_error", "seconds"}  # fmt: skip
    assert expected <= set(result)
    assert set(result["model_error"]) == {"train_loss", "test_error", "theta", "m"}
    assert result["found"] == "semantic" and result["converged"] is True
    assert np.shape(result["overlaps"]["q"]) == (2, 1, 1)
    assert np.shape(result["overlaps"]["theta"]) == (2, 1, 1)
    assert np.shape(result["overlaps"]["m"]) == (2, 1)
    assert set(result["norms"]) == {"q", "m", "V", "theta"}
    assert set(result["stability"]) >= {"replicon", "jump_weight", "trusted"}
    assert set(result["stderr"]) == {"q", "m", "V", "theta", "train_loss", "test_error"}


def test_solve_with_breaking(capsys):
    code = _run(["solve", "--alpha", "2", "--breaking", "1", "--json", *FAST])
    result = json.loads(capsys.readouterr().out)
    assert code == 0
    assert set(result["overlaps"]) == {"q0", "q1", "m", "V", "theta"}
    assert {"parisi", "complexity", "train_loss", "test_error", "stderr"} <= set(result)
    # Nothing jumps there: no clusters, no y.
    assert result["parisi"] is None and result["overlaps"]["q0"] == result["overlaps"]["q1"]


def test_lost_branch_exits_with_three_and_still_prints(capsys):
    code = _run(["solve", "--alpha", "0.5", "--branch", "semantic", "--json", *FAST])
    result = json.loads(capsys.readouterr().out)
    assert code == 3
    assert result["found"] == "uninformed"
    assert result["stability"]["trusted"] is False


def test_text_output_and_second_spellings_of_options(capsys):
    words = ["--start", "semantic", "--lambda", "0.01", "--d", "100"]
    assert _run(["solve", "--alpha", "2", "--points", "12", *words]) == 0
    out, err = capsys.readouterr()
    assert "semantic branch at alpha = 2" in out
    assert "semantic branch at alpha = 2, d = 100" in out and "(positions)]/d" in out
    assert err == ""


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["solve", "--alpha", "0"], ["--alpha", "'0'", "> 0"]),
        (["solve", "--alpha", "-1"], ["--alpha", "-1"]),
        (["solve", "--alpha", "nan"], ["--alpha", "nan", "finite"]),
        (["solve", "--alpha", "two"], ["--alpha", "two"]),
        (["solve"], ["--alpha"]),
        (["solve", "--alpha", "1", "--omega", "1.5"], ["--omega", "1.5", "<= 1"]),
        (["solve", "--alpha", "1", "--omega", "nan"], ["--omega", "nan"]),
        (["solve", "--alpha", "1", "--sigma", "0"], ["--sigma", "> 0"]),
        (["solve", "--alpha", "1", "--ridge", "0"], ["--ridge", "> 0"]),
        (["solve", "--alpha", "1", "--branch", "other"], ["--branch", "other", "semantic"]),
        (["solve", "--alpha", "1", "--mixing", "strange"], ["mixing", "strange", "standard"]),
        (["solve", "--alpha", "1", "--mixing", "absent.json"], ["mixing", "absent.json"]),
        (["solve", "--alpha", "1", "--student-rank", "0"], ["--student-rank", "0"]),
        (["solve", "--alpha", "1", "--seed", "-3"], ["--seed", "-3"]),
        (["solve", "--alpha", "1", "--points", "3"], ["--points", "3"]),
        (["solve", "--alpha", "1", "--rtol", "0"], ["--rtol"]),
        (["solve", "--alpha", "1", "--colour", "red"], ["--colour"]),
        (["sovle"], ["sovle", "did you mean solve?"]),
        (["solve", "--alpha", "1", "--lamda", "1"], ["--lamda", "--lambda"]),
        (["solve", "--alpha", "1", "--log2-points", "4096"], ["4096", "log2 of the number"]),
        (["solve", "--alpha", "1", "--d", "0"], ["--d", "0"]),
        (["solve", "--alpha", "1", "--d", "9", "--breaking", "1"], ["--d", "--breaking 1"]),
        (["curve", "--alphas", "1:2", "--out", "a.nc"], ["--alphas", "1:2", "A:B:N"]),
        (["curve", "--alphas", "0:2:5", "--out", "a.nc"], ["--alphas", "> 0"]),
        (["curve", "--alphas", "1:1:5", "--out", "a.nc"], ["--alphas"]),
        (["curve", "--alphas", "1:2:5", "--out", "a.txt"], ["--out", "a.txt", ".nc"]),
        (["curve", "--alphas", "1:2:5", "--out", "no/a.nc"], ["--out", "no/a.nc"]),
        (["curve", "--alphas", "1:2:5", "--out", "a.nc", "--plot", "a.gif"], ["--plot", "a.gif"]),
        (["curve", "--alphas", "1:2:5", "--out", "a.nc", "--branches", "x"], ["--branches", "x"]),
        (
            ["curve", "--alphas", "1:2:2", "--out", "a.nc", "--lr", "4"],
            ["--lr", "--theory state_evolution"],
        ),
        (
            ["curve", "--alphas", "1:2:2", "--out", "a.nc", "--theory", "dynamics", "--rtol", ".1"],
            ["--rtol", "--theory dynamics"],
        ),
        (["curve", "--alphas", "1:2:2", "--out", "a.nc", "--theory", "x"], ["--theory", "x"]),
        (["solve", "--alpha", "1", "--ridge", "inf"], ["--ridge", "'inf'", "finite number > 0"]),
        (["solve", "--alpha", "1", "--seed", "1.5"], ["--seed", "'1.5'", "integer >= 0"]),
        (["dynamics", "--alpha", "1", "--lr", "1", "--steps", "0"], ["--steps", "integer >= 1"]),
        (["explore", "--port", "70000"], ["--port", "70000", "<= 65535"]),
        (["reproduce"], ["command", "reproduce", "python -m reproduction"]),
        (["reproduce", "transition", "--quick"], ["python -m reproduction"]),
        (["critical", "--alpha-max", "inf"], ["--alpha-max", "inf"]),
        (["diagram", "--alphas", "1:2:2", "--omegas", "0:2:2", "--out", "a.nc"], ["--omegas", "2"]),
    ],
)
def test_bad_input_is_one_line_and_exit_two(arguments, parts, refused):
    assert refused(arguments, parts)


def test_bad_mixing_file(refused, tmp_path):
    (tmp_path / "a.json").write_text("[[0.6, 0.5], [0.4, 0.6]]")
    assert refused(["solve", "--alpha", "1", "--mixing", "a.json"], ["rows that each sum to 1"])


def test_curve_writes_dataset_and_figure(capsys, tmp_path):
    out, plot = tmp_path / "c.nc", tmp_path / "c.png"
    code = _run(["curve", "--alphas", "1.1:1.5:2", "--out", str(out), "--plot", str(plot),
                 "--json", *FAST])  # fmt: skip
    result = json.loads(capsys.readouterr().out)
    assert code == 0
    assert result["out"] == str(out) and result["branches"] == ["semantic", "positional"]
    with xr.open_dataset(out) as dataset:
        assert dict(dataset.sizes) == {"branch": 2, "alpha": 2}
        np.testing.assert_allclose(dataset["train_loss"], result["train_loss"])
    assert plot.stat().st_size > 10_000
    assert 1.1 < result["alpha_c"] < 1.5
    _run(["curve", "--alphas", "1.1:1.5:2", "--out", str(out), *FAST])
    table = capsys.readouterr().out
    assert "alpha_c = " in table and "1.500" in table


def test_curve_of_the_dynamics(capsys, tmp_path):
    out, plot = tmp_path / "e.nc", tmp_path / "e.png"
    few = ["--theory", "dynamics", "--lr", "6", "--steps", "5", "--ensemble", "8"]
    arguments = ["curve", "--alphas", "0.5:2:2", "--out", str(out), "--branches", "semantic"]
    code = _run([*arguments, "--plot", str(plot), "--json", *few])
    result = json.loads(capsys.readouterr().out)
    assert code == 0 and result["theory"] == "dynamics" and "V" not in result
    assert 0.1 < result["theta"][0][0] < 0.25 and result["stderr"]["theta"][0][0] > 0
    with xr.open_dataset(out) as dataset:
        np.testing.assert_allclose(dataset["theta"], result["theta"])
    assert plot.stat().st_size > 10_000
    assert _run([*arguments, *few]) == 0
    assert "ends of gradient descent against alpha" in capsys.readouterr().out


def test_one_pass(capsys, tmp_path, refused):
    arguments = ["online", "--alpha", "2", "--lr", "4", "--start", "semantic"]
    plot = tmp_path / "o.png"
    assert _run([*arguments, "--json", "--plot", str(plot)]) == 0
    result = json.loads(capsys.readouterr().out)
    assert len(result["alpha"]) == len(result["theta"]) == len(result["stderr"]["q"]) == 101
    assert plot.stat().st_size > 10_000
    assert _run([*arguments, "--theta0", "0.1"]) == 0
    assert "one pass to alpha = 2" in capsys.readouterr().out
    assert refused([*arguments, "--lr", "0"], ["--lr", "number > 0"])


def test_help_has_an_example_and_needs_no_jax():
    script = (
        "import sys; from dotphase.cli.main import _run; "
        f"codes = [_run([*name.split(), '--help']) for name in {['', *COMMANDS]!r}]; "
        "heavy = {'jax', 'numpy', 'scipy', 'xarray', 'matplotlib'} & set(sys.modules); "
        "sys.exit(any(codes) or len(heavy))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for shown in done.stdout.split("Usage: ")[1:]:
        assert "Example: dotphase" in shown
    assert done.stdout.count("Usage: ") == 1 + len(COMMANDS)


@pytest.mark.parametrize(
    "command",
    [
        ["curve", "--alphas", "0.3:2:200", "--out", "c.nc", "--log2-points", "18"],
        # This one is compiling most of the time.
        ["amp", "--d", "50", "--alpha", "1", "--seeds", "60"],
    ],
    ids=["computing", "compiling"],
)
def test_interrupt_exits_with_130(tmp_path, command):
    process = subprocess.Popen(
        [sys.executable, "-m", "dotphase", *command],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        env={"PATH": "", "HOME": str(tmp_path), "PYTHONPATH": ":".join(sys.path)},
    )
    try:
        compiled = tmp_path / ".cache/dotphase/compiled"
        wait_for(lambda: compiled.is_dir() and any(compiled.iterdir()), "the work to begin")
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 130
    assert err.strip() == "dotphase: interrupted"
    assert not (tmp_path / "c.nc").exists()


def test_an_unexpected_error_is_one_line_and_a_traceback_on_request(monkeypatch, capsys):
    def broken(*arguments, **options):
        raise ZeroDivisionError("two\nlines")

    monkeypatch.setattr("dotphase.solve", broken)
    assert _run(["solve", "--alpha", "1"]) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and "ZeroDivisionError: two lines" in err and "--debug" in err
    assert _run(["--debug", "solve", "--alpha", "1"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_an_output_that_is_closed(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    _open_streams()
    with sys.stdout:
        assert _run(["--version"]) == 0


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_an_output_that_is_full(unbuffered):
    done = subprocess.run(
        f"{sys.executable} -m dotphase histogram --help > /dev/full", shell=True,
        capture_output=True, text=True, env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "No space left" in done.stderr


def test_the_shell_can_complete_what_is_typed(monkeypatch, capsys):
    monkeypatch.setenv("_DOTPHASE_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "dotphase cri")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert _run([]) == 0
    assert capsys.readouterr().out.split(",")[-1].strip() == "critical"


def test_the_shell_completes_names_of_choices(monkeypatch, capsys):
    monkeypatch.setenv("_DOTPHASE_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "dotphase solve --branch s")
    monkeypatch.setenv("COMP_CWORD", "3")
    assert _run([]) == 0
    assert capsys.readouterr().out.split() == ["plain,semantic"]


def test_help_shows_the_range_of_numbers(capsys):
    assert _run(["dynamics", "--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert (
        "--batch-fraction FLOAT Fraction of the sentences in each step. [default: 1.0; 0<x<=1]"
        in text
    )
    assert "--theta0 FLOAT Initial theta [default: that of the start]. --m0" in text


def test_warnings_are_red_on_a_terminal_alone(capsys):
    echo("fine\n  NOT TRUSTED: why")
    assert capsys.readouterr().out == "fine\n  NOT TRUSTED: why\n"
    with click.Context(click.Command("any"), color=True).scope():
        echo("fine\n  NOT TRUSTED: why")
    assert "\x1b[31m  NOT TRUSTED: why" in capsys.readouterr().out


class RecordedBar:
    """Stand-in for the bar of rich: the last value of each field."""

    def __init__(self):
        self.fields = {}

    def update(self, task, **changes):
        self.fields |= changes


def test_a_bar_follows_events_and_shows_inner_steps_as_text():
    recorded = RecordedBar()
    bar = ProgressBar("training", recorded, 0)
    bar(ProgressEvent("training", 3, 8))
    assert (recorded.fields["completed"], recorded.fields["total"]) == (3, 8)
    bar(ProgressEvent("steps", 250, 1000))
    assert recorded.fields["description"] == "training: step 250 of at most 1000"
    assert (recorded.fields["completed"], recorded.fields["total"]) == (3, 8)
    bar.status()
    assert recorded.fields["description"] == "training"
    assert STEPS == INNER_STAGE


def test_without_a_terminal_there_is_no_bar(capsys):
    with progress_bar("solving", total=2) as bar:
        bar(ProgressEvent("solving", 1, 2))
        bar.status("theory")
    assert capsys.readouterr().err == ""


def test_listeners_are_called_around_compilations():
    texts = []
    with compiling.compilation_listener(texts.append):
        compiling._on_start(compiling.START_EVENT)
        compiling._on_start("/other")
        compiling._on_end(compiling.END_EVENT, 0.2)
    compiling._on_start(compiling.START_EVENT)
    assert texts == ["compiling", ""]


def test_a_table_is_printed_without_a_file(capsys):
    assert (
        _run(["diagram", "--alphas", "1:2:2", "--omegas", "0.3:0.3:1", "--log2-points", "12"]) == 0
    )
    out = capsys.readouterr().out
    assert "alpha_c" in out and "wrote" not in out
    assert re.search(r"0.3000 +1\.2\d* ± 0\.\d+", out)


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_a_signal_while_the_command_line_is_imported_is_one_line(tmp_path, number):
    late = f"import os, signal\nos.kill(os.getpid(), signal.{number})\nraise RuntimeError\n"
    (tmp_path / "click.py").write_text(late)
    path = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run(
        [sys.executable, "-m", "dotphase", "solve"],
        env={"PATH": "", "PYTHONPATH": path}, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (130, "dotphase: interrupted\n")


def test_an_interrupt_is_announced_once(capsys, monkeypatch):
    """By the command, or by the main thread after the grace period."""

    def interrupted(**arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(main.cli, "main", interrupted)
    announced = threading.Lock()
    assert main._run([], announced) == 130
    main._announce_interrupt(announced)
    assert main._run([], announced) == 130
    assert capsys.readouterr().err == "dotphase: interrupted\n"


@pytest.mark.parametrize("count", ["9" * 5000, "0", "٣٣٣٣٣٣٣", "100001", "-1", "1.5", ""])
def test_odd_numbers_of_points_are_refused_in_one_line(count, capsys):
    assert _run(["curve", "--alphas", f"1:2:{count}"]) == 2
    assert "must be A:B:N" in capsys.readouterr().err


def test_the_time_of_a_solve_may_be_limited(capsys):
    assert _run(["solve", "--alpha", "2", "--max-seconds", "1e-9", "--json", *FAST]) == 3
    found = json.loads(capsys.readouterr().out)
    assert not found["converged"] and "max_seconds" in found["message"]
