"""Code of docstrings and pages; equal calls of public functions are computed once."""

import doctest
import inspect
import re
from contextlib import contextmanager
from functools import wraps

import pytest

pytest.importorskip("sphinx")

import dotphase as dp
from extensions.public_names import GROUPS, HOMES, resolve

#: One public name for each object: two modules may export the same one.
NAMES = sorted({HOMES[name]: name for names in GROUPS.values() for name in names}.values())
#: Arguments of functions that compute. Calls of other functions are not shared.
COMPUTES = {"model", "family", "alpha", "alphas", "values", "runs", "steps"}
#: Arguments of calls that are never shared: files must be written, and callbacks called.
NEVER_SHARED = {"out", "path", "folder", "checkpoint", "progress"}

_results = {}


def accepted(function):
    """Names of the arguments of a function, with the fields of its settings."""
    parameters = inspect.signature(function).parameters
    names = set(parameters)
    for parameter in parameters.values():
        fields = re.fullmatch(r"Unpack\[(\w+)\]", str(parameter.annotation))
        if fields:
            names |= set(inspect.unwrap(function).__globals__[fields[1]].__annotations__)
    return names


def identify(value):
    """Return a text that is equal for equal arguments.

    The printed form of a model has only the names of its functions: models of two pages may both
    have a `teacher`.
    """
    fields = vars(value).values() if isinstance(value, dp.Model) else ()
    return repr((value, [id(field) for field in fields if inspect.isfunction(field)]))


def share_results(name, function, small=None):
    """Wrap a function: equal calls return one result, and arguments in `small` are replaced."""
    signature = inspect.signature(function)
    kinds = {parameter.kind: name for name, parameter in signature.parameters.items()}
    keywords = kinds.get(inspect.Parameter.VAR_KEYWORD)

    @wraps(function)
    def call(*args, **kwargs):
        arguments = dict(signature.bind(*args, **kwargs).arguments)
        arguments |= arguments.pop(keywords, {})
        arguments |= small or {}
        if NEVER_SHARED & arguments.keys():
            return function(**arguments)
        key = (name, *(f"{field}={identify(value)}" for field, value in sorted(arguments.items())))
        if key not in _results:
            # The arguments stay alive, so that no other object gets the id of one of them.
            _results[key] = arguments, function(**arguments)
        return _results[key][1]

    return call


@contextmanager
def shared_results(small=None):
    """Share the results of all public functions that compute.

    Parameters
    ----------
    small : callable, optional
        Arguments to replace, for the name of a function and the names of its arguments.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name in set(HOMES) - set(GROUPS["plot"]):
            function = resolve(name)
            if not inspect.isfunction(function) or not COMPUTES & (names := accepted(function)):
                continue
            home, _, last = name.rpartition(".")
            wrapped = share_results(name, function, small and small(name, names))
            patch.setattr(resolve(home), last, wrapped)
        yield


def examples(name):
    """Find the examples of a public name; a class includes its methods."""
    value = resolve(name)
    tests = doctest.DocTestFinder(recurse=inspect.isclass(value)).find(
        value, name, module=False, globs={"dp": dp}
    )
    return [test for test in tests if test.examples]


def run(name):
    """Return the failures that doctest reports for the examples of a public name."""
    tests, failures = examples(name), []
    with shared_results():
        for test in tests:
            runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
            runner.run(test, out=failures.append)
    return "".join(failures)


def breaks_symmetry(name):
    """True if examples average over inner fields: they take longer to run than to compile."""
    return any("inner=" in example.source for test in examples(name) for example in test.examples)
