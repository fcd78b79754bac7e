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


def no_attribute(package: str, name: str, renamed: Mapping[str, str]) -> AttributeError:
    """The error for a name that a package does not have; says what it is called now, if it is."""
    if name in renamed:
        return AttributeError(f"{name} is called {renamed[name]} now")
    return AttributeError(f"module {package!r} has no attribute {name!r}")


def load(
    package: str, homes: Mapping[str, Home], name: str, renamed: Mapping[str, str] | None = None
) -> Any:
    """A public name of a package, imported from its home; `no_attribute` if there is none."""
    if name not in homes:
        raise no_attribute(package, name, renamed or {})
    home = homes[name]
    if home.module != package:
        module = import_module(home.module)
        if hasattr(module, home.name):
            return getattr(module, home.name)
    return import_module(f"{home.module}.{home.name}")
