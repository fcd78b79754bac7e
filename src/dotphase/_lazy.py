"""Public names that are loaded on first use, declared once, in a stub that type checkers read."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any


def read_stub(file: str) -> dict[str, str]:
    """Names that the stub beside a module imports, and the modules they come from."""
    stub = Path(file).with_suffix(".pyi")
    return {
        alias.asname or alias.name: node.module
        for node in ast.parse(stub.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }


def no_attribute(package: str, name: str, renamed: Mapping[str, str]) -> AttributeError:
    """The error for a name that a package does not have; says what it is called now, if it is."""
    now = f"; it is called {renamed[name]} now" if name in renamed else ""
    return AttributeError(f"module {package!r} has no attribute {name!r}{now}")


def load(package: str, homes: Mapping[str, str], name: str) -> Any:
    """A public name of a package, imported from its home; `AttributeError` if there is none."""
    if name not in homes:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    if homes[name] == package:  # a part of the package itself
        return import_module(f"{package}.{name}")
    return getattr(import_module(homes[name]), name)
