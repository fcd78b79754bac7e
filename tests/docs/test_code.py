"""Code of docstrings, pages and recipes runs; in one file, so that it is compiled once."""

import inspect
import json
import re
from importlib import import_module
from pathlib import Path

import pytest
from click.testing import CliRunner

import dotphase as dp
import made_up
from dotphase.cli.main import cli
from examples import NAMES, RESULTS, breaks_symmetry, examples, run, share
from extensions.public_names import GROUPS, HOMES, resolve
from reproduction.items import ITEMS

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = sorted(
    page.relative_to(ROOT).as_posix()
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
    if BLOCK.search(page.read_text(encoding="utf-8"))
)
#: Files that CONTRIBUTING.md shows, by where they belong.
FILE = re.compile(r"^```python\n# (\S+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
RECIPES = dict(FILE.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")))
#: What expensive functions are called with instead of what a page says: the sizes that the examples
#: of docstrings have.
SMALL = {
    "alpha": 2.0,
    "d": 40,
    "seeds": 2,
    "log2_points": 12,
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
#: The same for single functions, where the sizes above mean something else.
SMALL_FOR = {
    "dotphase.dynamics": {
        "d": None,
        "steps": 5,
        "log2_ensemble": 8,
        "repetitions": 2,
        "rtol": None,
    },
    "dotphase.analysis.outcomes": {
        "alphas": [2.0], "scales": [0.1], "d": 200, "draws": 2, "steps": 15,
    },
}  # fmt: skip
#: Functions that a page calls as it says: they are quick, or the sizes mean something else.
AS_SAID = {"dotphase.histogram.emergence"}


@pytest.fixture(autouse=True, scope="module")
def folder(tmp_path_factory):
    """One folder for all code: what one example has written, another reads."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("code"))
        yield


@pytest.mark.parametrize("name", [name for name in NAMES if not breaks_symmetry(name)])
def test_the_example_of_a_public_name_runs(name):
    assert examples(name), f"{name} has no example"
    assert run(name) == ""


def test_calls_that_need_only_the_package_are_shared():
    known = {}
    assert share("found = dp.solve(model, 1.0)\n", known) == "found = dp.solve(model, 1.0)\n"
    assert share("found = dp.solve(dp.positional_semantic(), 1.0)\n", {}) == (
        "found = shared(\"dp.solve(shared('dp.positional_semantic()'), 1.0)\")\n"
    )
    assert share("model = dp.positional_semantic()\n", known) == (
        "model = shared('dp.positional_semantic()')\n"
    )
    assert share("found = dp.solve(model, 1.0)\n", known) == (
        "found = shared(\"dp.solve(shared('dp.positional_semantic()'), 1.0)\")\n"
    )
    assert share("model = other\n", known) == "model = other\n"
    assert share("found = dp.solve(model, 1.0)\n", known) == "found = dp.solve(model, 1.0)\n"


@pytest.fixture
def quick(monkeypatch, paper):
    """Public functions at small size, for the model of the paper, and once for all pages.

    A page's own model is still built, which calls its teacher and student, and its calls
    are still held to the signatures; what they return is a real result.
    """

    def shrink(name, function):
        small = {key: value for key, value in SMALL.items() if key in accepted(function)}
        small |= SMALL_FOR.get(name, {})

        def call(*args, **kwargs):
            given = dict(inspect.signature(function).bind(*args, **kwargs).arguments)
            given |= given.pop("changes", {})
            given |= small
            if isinstance(given.get("model"), dp.Model):
                given["model"] = paper
            key = (name, repr(given))
            if key not in RESULTS:
                RESULTS[key] = function(**given)
            return RESULTS[key]

        return call

    for name in set(HOMES) - AS_SAID - set(GROUPS["plot"]):
        value = resolve(name)
        if inspect.isfunction(value) and SMALL.keys() & accepted(value):
            home, _, last = name.rpartition(".")
            monkeypatch.setattr(resolve(home), last, shrink(name, value))


def accepted(function):
    """Names of arguments, the fields of settings among them."""
    parameters = inspect.signature(function).parameters
    names = set(parameters)
    for parameter in parameters.values():
        fields = re.fullmatch(r"Unpack\[(\w+)\]", str(parameter.annotation))
        if fields:
            names |= set(inspect.unwrap(function).__globals__[fields[1]].__annotations__)
    return names


@pytest.mark.parametrize("page", PAGES)
def test_python_on_a_page_runs(page, quick, capsys):
    names = {"dp": dp, "__name__": "page"}
    blocks = BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    assert blocks
    for number, code in enumerate(blocks):
        exec(compile(code, f"{page}, block {number}", "exec"), names)


def test_the_readme_has_python():
    assert "README.md" in PAGES


@pytest.fixture
def add(tmp_path, monkeypatch):
    """Put a file of CONTRIBUTING.md where it belongs, for one test; gives its name."""

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
    found = dp.run_study(study, tmp_path / "study", on="here")
    assert found["linear_test_error"].sizes["omega"] == 2


def test_a_figure(add, tmp_path):
    dataset = made_up.curve().assign(replicon=made_up.curve()["train_loss"])
    name = add("figures/replicon.py")
    figure = getattr(dp.plot, name)(dataset, tmp_path / "replicon.png")
    assert len(figure.axes[0].lines) == 3
