"""Examples of docstrings, run by doctest; calls that several of them make are computed once."""

import ast
import doctest
import inspect

import pytest

pytest.importorskip("sphinx")

import dotphase as dp
from extensions.public_names import GROUPS, HOMES, resolve

#: One public name for each home: a class that two modules show has one docstring.
NAMES = sorted({HOMES[name]: name for names in GROUPS.values() for name in names}.values())
#: Results of calls, by what was called and how.
RESULTS = {}


def shared(call):
    """The value of a call that several examples begin with; it is computed once."""
    if call not in RESULTS:
        RESULTS[call] = eval(call, {"dp": dp, "shared": shared})
    return RESULTS[call]


class Spelt(ast.NodeTransformer):
    """An expression with the names in it replaced by what they stand for."""

    def __init__(self, known):
        self.known = known

    def visit_Name(self, node):
        return self.known.get(node.id, node)


class Inside(ast.NodeTransformer):
    """An expression that needs only the package, with the calls inside shared as well."""

    def visit_Call(self, node):
        self.generic_visit(node)
        return node if isinstance(node.func, ast.Name) else as_shared(node)


def as_shared(call):
    return ast.parse(f"shared({ast.unparse(call)!r})", mode="eval").body


def share(source, known):
    """The source of an example, with a call replaced by `shared` if it needs only the package.

    `known` has the expressions that earlier lines of the example have given names to.
    """
    (statement,) = ast.parse(source).body
    if not (isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)):
        return source
    (target,) = statement.targets
    value = Spelt(known).visit(statement.value)
    names = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
    if names - {"dp", "shared"}:
        known.pop(target.id, None)
        return source
    if isinstance(value, ast.Call):
        value = as_shared(Inside().generic_visit(value))
        source = f"{target.id} = {ast.unparse(value)}\n"
    known[target.id] = value
    return source


def examples(name):
    """The examples of a public name, of a class with those of its methods."""
    value = resolve(name)
    found = doctest.DocTestFinder(recurse=inspect.isclass(value)).find(
        value, name, module=False, globs={"dp": dp, "shared": shared}
    )
    return [test for test in found if test.examples]


def run(name):
    """What doctest has to say against the examples of a public name."""
    said = []
    for test in examples(name):
        known = {}
        for example in test.examples:
            example.source = share(example.source, known)
        doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS).run(
            test, out=said.append
        )
    return "".join(said)


def breaks_symmetry(name):
    """Whether the examples average over inner fields: they compute longer than they compile."""
    return any("inner=" in example.source for test in examples(name) for example in test.examples)
