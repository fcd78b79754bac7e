"""Public names that are loaded on first use, declared once, in a stub that type checkers read."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple


class Home(NamedTuple):
    """Where a public name lives: a name of a module, which may differ from the public one."""

    module: str
    name: str


def read_stub(file: str) -> dict[str, Home]:
    """Names that the stub beside a module imports, in its order, and their homes."""
    stub = Path(file).with_suffix(".pyi")
    return {
        alias.asname or alias.name: Home(node.module, alias.name)
        for node in ast.parse(stub.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }


def load(
    package: str, homes: Mapping[str, Home], name: str, renamed: Mapping[str, str] | None = None
) -> Any:
    """A public name of a package, imported from its home.

    Raises `AttributeError` if there is none, which says what a name of `renamed` is called now.
    """
    if name not in homes:
        now = (renamed or {}).get(name)
        raise AttributeError(
            f"{name} is called {now} now"
            if now
            else f"module {package!r} has no attribute {name!r}"
        )
    home = homes[name]
    if home.module != package:
        module = import_module(home.module)
        if hasattr(module, home.name):
            return getattr(module, home.name)
    return import_module(f"{home.module}.{home.name}")
