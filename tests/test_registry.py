"""One file in one place adds an option: to the command line, to studies, to Python.

The files are written into a folder of their own that counts as part of the package while a test
runs.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module

import pytest

import dotphase as dp
from dotphase.cli.main import _run
from dotphase.config.registry import Registry
from dotphase.study.tasks import compute_point


@pytest.fixture
def add(tmp_path, monkeypatch):
    """Writes the file of a new option of a package."""
    monkeypatch.setattr("dotphase.cli.options.prepare_jax", lambda: None)

    def write(package, name, text):
        (tmp_path / f"{name}.py").write_text(text)
        home = import_module(package)
        monkeypatch.setattr(home, "__path__", [*home.__path__, str(tmp_path)])
        monkeypatch.setitem(sys.modules, f"{package}.{name}", None)
        del sys.modules[f"{package}.{name}"]

    return write


@pytest.fixture
def answer(capsys):
    """What a command prints."""

    def run(*arguments):
        assert _run([*arguments, "--json"]) in (0, 3)
        return json.loads(capsys.readouterr().out)

    return run


def helps(capsys, command, word):
    assert _run([command, "--help"]) == 0
    return word in capsys.readouterr().out


def value(task, name, **fixed):
    """A result of the one point of a study."""
    outcome = compute_point(**dp.Study(task, fixed).arguments(0))
    assert outcome.reason is None
    return outcome.values[name]


SMALL = ("--d", "24", "--alpha", "2", "--seeds", "1", "--held-out", "256")


def trained(answer, paper, **new):
    """A run with a new option, by Python; the command and the study give the same."""
    run = dp.train(paper, 2.0, 24, seeds=1, held_out=256, **new).runs[0]
    ((name, chosen),) = new.items()
    assert answer("train", *SMALL, f"--{name}", chosen)["runs"][0]["q"] == run.q
    assert value("train", "q", alpha=2.0, d=24, held_out=256, **new) == run.q
    return run


def test_an_optimizer(add, answer, capsys, paper):
    add(
        "dotphase.training.optimizers",
        "lion_of_three_steps",
        "import optax\nfrom dotphase.training.loop import Optimizer, first_order\n"
        "OPTIMIZER = Optimizer(first_order(optax.lion), steps=3, lr=0.01)\n",
    )
    assert trained(answer, paper, optimizer="lion_of_three_steps").iterations == 3
    assert helps(capsys, "train", "lion_of_three_steps")


def test_a_start(add, answer, capsys, paper):
    add(
        "dotphase.finite_d.initializers",
        "halfway",
        "from dotphase.finite_d.initialization import Initializer\n"
        "INITIALIZER = Initializer(\n"
        "    lambda key, teacher, positions, columns, scale: teacher[:, :columns] / 2\n"
        ")\n",
    )
    assert trained(answer, paper, start="halfway").q > 0
    assert helps(capsys, "amp", "halfway")


def test_a_branch(add, answer, capsys, paper):
    add(
        "dotphase.theory.branches",
        "stronger",
        "from dotphase.theory.branch import Branch, aligned_overlaps\n"
        "BRANCH = Branch(lambda model: aligned_overlaps(model, semantic=1), frozenset({'m'}))\n",
    )
    solution = dp.solve(paper, 2.0, "stronger", log2_points=12)
    assert solution.on_branch and solution.found == "semantic"
    found = answer("solve", "--alpha", "2", "--branch", "stronger", "--log2-points", "12")
    assert found["train_loss"] == solution.train_loss
    asked = {"alpha": 2.0, "branch": "stronger", "log2_points": 12}
    assert value("theory", "train_loss", **asked) == solution.train_loss
    assert helps(capsys, "solve", "stronger")


def test_a_model(add, answer, capsys):
    add(
        "dotphase.model.named",
        "stiff",
        "from dotphase.config.parameters import Number, Parameter, table\n"
        "from dotphase.model.named import NamedModel\n"
        "def build(softness):\n"
        "    from dotphase.model.paper import positional_semantic\n"
        "    return positional_semantic(ridge=1 / softness)\n"
        "MODEL = NamedModel(build, table(Parameter('softness', Number(above=0), 10.0, 'Its.')))\n",
    )
    assert dp.load_model("stiff", softness=20.0).ridge == 0.05
    arguments = ("--model", "stiff", "--set", "softness=20", "--log2-points", "12")
    expected = dp.solve(dp.positional_semantic(ridge=0.05), 2.0, log2_points=12).train_loss
    assert answer("solve", "--alpha", "2", *arguments)["train_loss"] == expected
    study = dp.Study("theory", {"alpha": 2.0, "log2_points": 12, "softness": 20.0}, model="stiff")
    assert compute_point(**study.arguments(0)).values["train_loss"] == expected
    assert helps(capsys, "solve", "stiff")


def test_a_command(add, capsys):
    text = "import click\n@click.command()\ndef command():\n    'Say.'\n    click.echo('hello')\n"
    add("dotphase.cli.commands", "greet", text)
    assert _run(["greet"]) == 0
    assert capsys.readouterr().out == "hello\n"
    assert _run(["--help"]) == 0
    assert "Say." in capsys.readouterr().out


def test_a_task(add):
    add(
        "dotphase.study.tasks",
        "double",
        "from dotphase.config.parameters import Number, Parameter, table\n"
        "from dotphase.study.tasks import Result, Task\n"
        "TASK = Task(lambda model, given, seed: {'twice': 2 * given['x'] + float(model.ridge)},\n"
        "            table(Parameter('x', Number())), {'twice': Result(float, 'twice x')})\n",
    )
    assert value("double", "twice", x=1.5, ridge=0.5) == 3.5
    with pytest.raises(dp.InvalidInput, match="x = None: must be fixed or swept"):
        dp.Study("double")


def test_options_of_a_running_program():
    registry: Registry[int] = Registry("task", "dotphase.study.tasks", "TASK")
    registry.register("answer", 42)
    assert registry["answer"] == 42 and "answer" in registry.names()
    with pytest.raises(dp.InvalidInput, match="is already registered"):
        registry.register("answer", 43)
    registry.unregister("answer")
    assert "answer" not in registry


@pytest.mark.parametrize("text", ["OPTIMISER = 1\n", "OPTIMIZER = (\n", "import no_such_module\n"])
def test_a_file_that_defines_nothing_is_named_in_one_line(add, paper, text):
    add("dotphase.training.optimizers", "broken", text)
    with pytest.raises(dp.InvalidInput, match="does not define OPTIMIZER") as caught:
        dp.train(paper, 2.0, 24, seeds=1, optimizer="broken")
    assert "\n" not in str(caught.value) and "optimizers.broken" in str(caught.value)


def test_a_parameter_is_set_or_swept_not_both(tmp_path, capsys):
    out = tmp_path / "d.nc"
    asked = ["--model", "ridge-regression", "--set", "ridge=0.1", "--parameter", "ridge"]
    grid = ["--values", "0.1:0.2:2", "--alphas", "1:2:2", "--out", str(out)]
    assert _run(["diagram", *asked, *grid]) == 2
    assert "must not be swept as well" in capsys.readouterr().err
    assert not out.exists()
