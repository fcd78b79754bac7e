"""Code of docstrings, pages and recipes runs. One file, so that functions are compiled once."""

import json
import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import dotphase as dp
import made_up
from dotphase.cli.main import cli
from examples import NAMES, breaks_symmetry, examples, run, share_results, shared_results
from reproduction.items import ITEMS

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = sorted(
    page.relative_to(ROOT).as_posix()
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
    if BLOCK.search(page.read_text(encoding="utf-8"))
)
#: Files shown in CONTRIBUTING.md, by their path.
FILE = re.compile(r"^```python\n# (\S+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
RECIPES = dict(FILE.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")))
#: Sizes that replace those of a page, except for the README: those of the examples in docstrings.
SMALL = {
    "d": 40,
    "seeds": 2,
    "log2_points": 12,
    "log2_sentences": 8,
    "iterations": 5,
    "alphas": [1.5, 2.0],
    "values": [0.2, 0.4],
    "until": 4.0,
    "records": 2,
    "runs": 1,
    "epochs": 1,
    "task": dp.histogram.Task(samples=200),
    "dimension": 8,
}
#: Sizes for functions with arguments of another meaning.
SMALL_FOR = {
    "dotphase.critical": {"alpha_min": 1.0, "alpha_max": 2.0},
    "dotphase.dynamics": {
        "d": None,
        "steps": 5,
        "log2_ensemble": 8,
        "repetitions": 2,
        "rtol": None,
    },
    "dotphase.analysis.outcomes": {
        "alphas": [2.0], "scales": [0.1], "d": 200, "seeds": 2, "steps": 15,
    },
}  # fmt: skip
#: Functions that are quick at the sizes of a page.
AS_WRITTEN = {"dotphase.histogram.emergence"}
#: The README runs as it stands, but for the dimension and the number of data sets.
README = {"d": 100, "seeds": 2}


@pytest.fixture(autouse=True, scope="module")
def folder(tmp_path_factory):
    """One folder for all code: an example may read the files of an earlier one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("code"))
        yield


@pytest.mark.parametrize("name", [name for name in NAMES if not breaks_symmetry(name)])
def test_the_example_of_a_public_name_runs(name):
    assert examples(name), f"{name} has no example"
    assert run(name) == ""


def test_equal_calls_share_a_result_and_other_models_do_not():
    calls = []

    def solve(model, alpha=1.0, path=None):
        calls.append(alpha)
        return object()

    def model_of_a_page():
        def teacher(h):
            return dp.softmax_attention(h)

        return dp.Model(teacher, dp.softmax_attention, length=2, positions=np.eye(2))

    shared = share_results("solve", solve)
    paper, first, second = dp.positional_semantic(), model_of_a_page(), model_of_a_page()
    assert shared(paper, 2.0) is shared(dp.positional_semantic(), alpha=2.0)
    assert shared(paper) is not shared(paper.replace(ridge=0.5))
    assert repr(first) == repr(second) and shared(first) is not shared(second)
    assert shared(paper, path="a") is not shared(paper, path="a")
    assert share_results("solve", solve, {"alpha": 7.0})(paper, 1.0) is not shared(paper, 1.0)
    assert calls.count(7.0) == 1 and calls.count(2.0) == 1


def small_sizes(name, accepted):
    """Sizes of a page's calls: a result is a real one of the page's own model."""
    if name in AS_WRITTEN:
        return {}
    return {key: SMALL[key] for key in SMALL.keys() & accepted} | SMALL_FOR.get(name, {})


def readme_sizes(name, accepted):
    return {key: README[key] for key in README.keys() & accepted}


@pytest.mark.parametrize("page", PAGES)
def test_python_on_a_page_runs(page, capsys):
    names = {"dp": dp, "__name__": "page"}
    blocks = BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    assert blocks
    with shared_results(readme_sizes if page == "README.md" else small_sizes):
        for number, code in enumerate(blocks):
            exec(compile(code, f"{page}, block {number}", "exec"), names)
    if page == "README.md":
        check_readme(names, capsys.readouterr().out)


def check_readme(names, output):
    """The README's own model is solved, and its first example prints the lines of the page."""
    solution = names["solution"]
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    for line in output.split("\n")[:4]:
        assert line in page
    assert solution.converged and solution.model.length == 3
    assert abs(solution.overlaps.theta[1, 0, 0] / solution.overlaps.theta[0, 0, 0] - 1) < 0.01
    assert names["positional"].train_loss > names["semantic"].train_loss


def test_the_readme_has_python():
    assert "README.md" in PAGES


@pytest.fixture
def add(tmp_path, monkeypatch):
    """Add a file of CONTRIBUTING.md to its package for one test, and return its name."""

    def put(path):
        (tmp_path / Path(path).name).write_text(RECIPES[path], encoding="utf-8")
        folder = str(Path(path).parent).replace("/", ".")
        prefix = "" if folder.startswith("reproduction") else "dotphase."
        package = import_module(prefix + folder)
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
        return Path(path).stem

    return put


def test_an_optimizer(add, paper):
    name = add("training/optimizers/lion.py")
    found = dp.train(paper, alpha=2.0, d=40, seeds=2, optimizer=name, steps=20)
    assert found.optimizer == "lion" and len(found.runs) == 2


def test_a_start(add, paper):
    name = add("finite_d/initializers/opposed.py")
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
    (tmp_path / "my_models.py").write_text(RECIPES["my_models.py"], encoding="utf-8")
    assert dp.load_model(f"{tmp_path / 'my_models.py'}:three_tokens", weight=0.2).length == 3


def test_an_item(add):
    name = add("reproduction/items/bare.py")
    assert name in ITEMS and ITEMS[name].title == "A purely semantic teacher"


def test_a_command(add):
    name = add("cli/commands/linear.py")
    result = CliRunner().invoke(cli, [name, "--json"])
    assert 0.001 < json.loads(result.stdout)["linear_test_error"] < 0.004


def test_a_task(add, tmp_path):
    name = add("study/tasks/linear.py")
    study = dp.Study(name, sweep={"omega": [0.2, 0.3]})
    found = dp.run_study(study, tmp_path / "study", engine="serial")
    assert found["linear_test_error"].sizes["omega"] == 2


def test_a_figure(add, tmp_path):
    dataset = made_up.curve().assign(replicon=made_up.curve()["train_loss"])
    name = add("figures/replicon.py")
    figure = getattr(dp.plot, name)(dataset, tmp_path / "replicon.png")
    assert len(figure.axes[0].lines) == 3
