"""Import the public names of a package at first use, as its stub ``__init__.pyi`` declares them.

The interface is that of `lazy_loader.attach_stub`. That library is not used because the package
must also import from a checkout in which only the numerical dependencies are installed.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from importlib import import_module
from os.path import splitext


def attach_stub(
    package: str, file: str
) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package.

    Parameters
    ----------
    package : its ``__name__``
    file : its ``__file__``, beside which the stub lies
    """
    # pathlib and typing would double the time of `import dotphase`.
    with open(splitext(file)[0] + ".pyi", encoding="utf-8") as stub:
        tree = ast.parse(stub.read())
    sources = {
        alias.asname or alias.name: (node.module, alias.name)
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
    names = sorted(sources)

    def load(name: str) -> object:
        if name not in sources:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, attribute = sources[name]
        if module != package and hasattr(import_module(module), attribute):
            return getattr(import_module(module), attribute)
        return import_module(f"{module}.{attribute}")

    return load, lambda: names, names
