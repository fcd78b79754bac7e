"""Code of docstrings and of pages runs; in one file, so that what it needs is compiled once."""

import ast
import doctest
import inspect
import re
from pathlib import Path

import pytest

pytest.importorskip("sphinx")

import dotphase as dp
from extensions.public_names import GROUPS, HOMES, resolve

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = sorted(
    page.relative_to(ROOT).as_posix()
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
    if BLOCK.search(page.read_text(encoding="utf-8"))
)
#: One public name for each home: a class that two modules show has one docstring.
NAMES = sorted({HOMES[name]: name for names in GROUPS.values() for name in names}.values())
#: What expensive functions are called with instead of what a page says: the sizes that the examples
#: of docstrings have.
SMALL = {
    "alpha": 2.0,
    "d": 40,
    "seeds": 2,
    "log2_points": 12,
    "iterations": 5,
    "alphas": [1.0, 2.0],
    "values": [0.2, 0.4],
    "starts": 2,
    "until": 4.0,
    "records": 2,
    "runs": 1,
    "epochs": 1,
    "task": dp.histogram.Task(samples=200),
    "dimension": 8,
}
#: Functions that a page calls as it says: they are quick, or the sizes mean something else.
AS_SAID = {"dotphase.histogram.emergence"}
#: Results of calls, by what was called and how.
RESULTS = {}


@pytest.fixture(autouse=True, scope="module")
def folder(tmp_path_factory):
    """One folder for all code: what one example has written, another reads."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("code"))
        yield


def shared(call):
    """The value of a call that several examples begin with; it is computed once."""
    if call not in RESULTS:
        RESULTS[call] = eval(call, {"dp": dp})
    return RESULTS[call]


def share(source):
    """The source of an example, with a call that needs only the package replaced by `shared`."""
    (statement,) = ast.parse(source).body
    if not (isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call)):
        return source
    names = {node.id for node in ast.walk(statement.value) if isinstance(node, ast.Name)}
    if names != {"dp"}:
        return source
    targets = " = ".join(ast.unparse(target) for target in statement.targets)
    return f"{targets} = shared({ast.unparse(statement.value)!r})\n"


def examples(name):
    """The examples of a public name, of a class with those of its methods."""
    value = resolve(name)
    found = doctest.DocTestFinder(recurse=inspect.isclass(value)).find(
        value, name, module=False, globs={"dp": dp, "shared": shared}
    )
    return [test for test in found if test.examples]


@pytest.mark.parametrize("name", NAMES)
def test_the_example_of_a_public_name_runs(name):
    assert ">>> " in (resolve(name).__doc__ or ""), f"{name} has no example"
    said = []
    for test in examples(name):
        for example in test.examples:
            example.source = share(example.source)
        doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=said.append)
    assert not said, "".join(said)


def test_calls_that_need_only_the_package_are_shared():
    assert share("model = dp.positional_semantic()\n") == (
        "model = shared('dp.positional_semantic()')\n"
    )
    assert share("found = dp.solve(model, 1.0)\n") == "found = dp.solve(model, 1.0)\n"


@pytest.fixture
def quick(monkeypatch, paper):
    """Public functions at small size, for the model of the paper, and once for all pages.

    A page's own model is still built, which calls its teacher and student, and its calls
    are still held to the signatures; what they return is a real result.
    """

    def shrink(name, function):
        signature = inspect.signature(function)

        def call(*args, **kwargs):
            bound = signature.bind(*args, **kwargs)
            taken = set(signature.parameters)
            if "changes" in taken:
                taken |= {"log2_points", "iterations"} & accepted(function)
            small = {key: value for key, value in SMALL.items() if key in taken}
            given = dict(bound.arguments)
            given |= given.pop("changes", {})
            given |= small
            if isinstance(given.get("model"), dp.Model):
                given["model"] = paper
            key = (name, repr(given))
            if key not in RESULTS:
                RESULTS[key] = function(**given)
            return RESULTS[key]

        return call

    for name in set(HOMES) - AS_SAID:
        value = resolve(name)
        if inspect.isfunction(value) and SMALL.keys() & accepted(value):
            home, _, last = name.rpartition(".")
            monkeypatch.setattr(resolve(home), last, shrink(name, value))


def accepted(function):
    """Names of arguments, those of settings among them."""
    names = set(inspect.signature(function).parameters)
    for parameter in inspect.signature(function, eval_str=True).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD and parameter.annotation is not parameter.empty:
            fields = getattr(parameter.annotation, "__args__", (None,))[0]
            names |= set(getattr(fields, "__annotations__", {}))
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
