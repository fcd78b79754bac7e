"""Everything public has an example, and the examples run."""

import ast
import doctest
import inspect

import pytest

pytest.importorskip("sphinx")

import dotphase as dp
from extensions.public_names import GROUPS, HOMES, resolve

#: One public name for each home: a class that two modules show has one docstring.
NAMES = sorted({HOMES[name]: name for names in GROUPS.values() for name in names}.values())
#: Results of calls that use nothing but the package, by their text.
RESULTS = {}


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
def test_the_example_of_a_public_name_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
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
