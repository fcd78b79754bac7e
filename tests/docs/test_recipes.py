"""Recipes of CONTRIBUTING.md: each new thing is one file, put where its first line says."""

import json
import re
from importlib import import_module
from pathlib import Path

import pytest
from click.testing import CliRunner

import dotphase as dp
from dotphase.cli.main import cli

CONTRIBUTING = Path(__file__).resolve().parents[2] / "CONTRIBUTING.md"
BLOCK = re.compile(r"^```python\n# (\S+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
FILES = dict(BLOCK.findall(CONTRIBUTING.read_text(encoding="utf-8")))


@pytest.fixture
def add(tmp_path, monkeypatch):
    """Put a file of CONTRIBUTING.md where it belongs, for one test; gives its name."""

    def put(path):
        (tmp_path / Path(path).name).write_text(FILES[path], encoding="utf-8")
        package = import_module("dotphase." + str(Path(path).parent).replace("/", "."))
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
        return Path(path).stem

    return put


def test_an_optimiser(add, paper):
    name = add("training/optimisers/lion.py")
    found = dp.train(paper, alpha=2.0, d=40, seeds=2, optimizer=name, steps=20)
    assert found.optimizer == "lion" and len(found.runs) == 2
    shares = dp.basins(paper, [2.0], [1.0], d=40, seeds=2, optimizers=[name], steps={name: 20})
    assert shares["optimizer"].values.tolist() == ["lion"]


def test_a_start(add, paper):
    name = add("finite/starts/opposed.py")
    found = dp.train(paper, alpha=2.0, d=40, seeds=2, start=name)
    assert found.runs[0].mechanism == "semantic"


def test_a_branch(add, paper):
    name = add("theory/branches/weak.py")
    assert dp.solve(paper, alpha=2.0, start=name, log2_points=12).overlaps.theta[0, 0, 0] > 0.1


def test_a_named_model(add):
    name = add("model/named/smooth_perceptron.py")
    assert dp.load_model(name, slope=2.0).length == 1
    assert dp.Study("theory", fixed={"alpha": 1.0, "slope": 2.0}, model=name).size == 1


def test_a_model_in_a_file(tmp_path):
    (tmp_path / "my_models.py").write_text(FILES["my_models.py"], encoding="utf-8")
    assert dp.load_model(f"{tmp_path / 'my_models.py'}:three_tokens", weight=0.2).length == 3


def test_an_item(add):
    from dotphase.report.items import ITEMS

    name = add("report/items/bare.py")
    assert name in ITEMS and ITEMS[name].title == "A purely semantic teacher"


def test_a_command(add):
    name = add("cli/commands/linear.py")
    result = CliRunner().invoke(cli, [name, "--json"])
    assert 0.001 < json.loads(result.stdout)["linear_test_error"] < 0.004


def test_a_task(add, tmp_path):
    name = add("sweep/tasks/linear.py")
    study = dp.Study(name, sweep={"omega": [0.2, 0.3]})
    found = dp.run_study(study, tmp_path / "study", on="here")
    assert found["linear_test_error"].sizes["omega"] == 2


def test_a_figure(add, tmp_path):
    import made_up

    dataset = made_up.curve().assign(replicon=made_up.curve()["train_loss"])
    name = add("figures/replicon.py")
    figure = getattr(dp.plot, name)(dataset, tmp_path / "replicon.png")
    assert len(figure.axes[0].lines) == 3
