"""The API reference, from the package itself: every public name once, in the groups of its stub.

``.. public-names:: GROUP`` documents the names below the comment of that name in ``__init__.pyi``,
or those of a named module such as ``plot``; ``.. public-table:: GROUP`` lists them with the first
line of each. A new name is documented without a change here.
"""

from __future__ import annotations

import inspect
import re
from abc import ABC, abstractmethod
from pathlib import Path
from types import ModuleType
from typing import Any

from docutils import nodes
from sphinx.addnodes import desc_signature, pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.roles import XRefRole
from sphinx.util.docutils import SphinxDirective

import dotphase

#: The group of the stub whose names are modules, each a group of its own.
MODULES = "modules"
#: Names that come first on their page.
FIRST = {"Model", "solve", "train", "run_study"}
#: ``name : words`` in a section of attributes: the words are a description, not a type.
ATTRIBUTE = re.compile(r"^(\w[\w, ]*?) : (.+)$")


def read_groups(stub: str) -> dict[str, list[str]]:
    """Names below each comment of a stub, by the comment in lower case with hyphens."""
    groups: dict[str, list[str]] = {}
    for line in stub.splitlines():
        if line.startswith("# "):
            names = groups.setdefault(line[2:].lower().replace(" ", "-"), [])
        elif line.startswith("from "):
            names.append(line.rsplit(" ", 1)[-1])
    return groups


def public_groups() -> dict[str, list[str]]:
    """All public names, as ``dotphase.solve`` or ``dotphase.plot.curve``, by group."""
    stub = Path(dotphase.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    groups = read_groups(stub)
    modules = groups.pop(MODULES)
    public = {
        group: [f"dotphase.{name}" for name in in_order(names)] for group, names in groups.items()
    }
    for module in modules:
        # Names of the package itself are documented there.
        exported = members(getattr(dotphase, module))
        names = [name for name in exported if name not in groups["model"]]
        names.sort(key=lambda name: (name[0].islower(), name))
        public[module] = [f"dotphase.{module}.{name}" for name in names]
    return public


def in_order(names: list[str]) -> list[str]:
    """Sort the names of a group: the first name of the page, functions, classes."""
    return sorted(names, key=lambda name: (name not in FIRST, name[0].isupper(), name))


def members(module: ModuleType) -> list[str]:
    """Public names of a module: its `__all__`, or the functions and classes that it defines."""
    listed = getattr(module, "__all__", None)
    return listed or [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]


def resolve(name: str) -> Any:
    """The object of a public name."""
    value: Any = dotphase
    for part in name.split(".")[1:]:
        value = getattr(value, part)
    return value


GROUPS = public_groups()
#: Defining module and name of each public name, and the first public name of each definition.
HOMES: dict[str, str] = {}
PUBLIC: dict[str, str] = {}
#: Public names by their last part.
BARE: dict[str, str] = {}
#: Modules under whose names the definitions of a module are documented.
SHOWN_AS: dict[str, set[str]] = {}
for _name in (name for names in GROUPS.values() for name in names):
    _value = resolve(_name)
    HOMES[_name] = f"{_value.__module__}.{_value.__qualname__}"
    PUBLIC.setdefault(HOMES[_name], _name)
    BARE.setdefault(_name.rpartition(".")[2], _name)
    SHOWN_AS.setdefault(_value.__module__, {_value.__module__}).add(_name.rpartition(".")[0])


class _Generated(SphinxDirective, ABC):
    """Directive whose content is the reStructuredText that `lines` returns."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        text = "\n".join(self.lines(GROUPS[self.arguments[0]]))
        return self.parse_text_to_nodes(text, allow_section_headings=False)

    @abstractmethod
    def lines(self, names: list[str]) -> list[str]:
        """Lines that document the names."""


class PublicNames(_Generated):
    """Document every name of a group."""

    def lines(self, names: list[str]) -> list[str]:
        module = names[0].rpartition(".")[0]
        lines = [] if module == "dotphase" else [f".. py:module:: {module}", ""]
        for name in names:
            directive, options = _directive(resolve(name))
            lines += [f".. {directive}:: {name}", *(f"   {option}" for option in options), ""]
        return lines


class PublicTable(_Generated):
    """List the names of a group with their first lines."""

    def lines(self, names: list[str]) -> list[str]:
        return [
            ".. autosummary::",
            "   :nosignatures:",
            "",
            *(f"   ~{name}" for name in names),
        ]


def _directive(value: Any) -> tuple[str, list[str]]:
    if not inspect.isclass(value):
        return "autofunction", []
    if issubclass(value, BaseException):
        return "autoexception", [":show-inheritance:"]
    return "autoclass", [":members:"]


def describe_attributes(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Turn a section of attributes into a list of names with descriptions."""
    result: list[str] = []
    inside = False
    for number, line in enumerate(lines):
        if number + 1 < len(lines) and lines[number + 1].startswith("---"):
            inside = line.strip() == "Attributes"
            result += [".. rubric:: Attributes", ""] if inside else [line]
            continue
        match = ATTRIBUTE.match(line) if inside else None
        if match:
            names = ", ".join(f"``{field}``" for field in match[1].split(", "))
            result += [names, f"    {match[2]}"]
        elif not (inside and line.startswith("---")):
            result.append(line)
    lines[:] = result


def skip_fields(app: Sphinx, what: str, name: str, obj: Any, skip: bool, options: Any) -> Any:
    """Skip the fields of named tuples, which the section of attributes describes."""
    doc = getattr(obj, "__doc__", None) or ""
    return True if doc.startswith("Alias for field number") else None


def shorten(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, signature: str, returns: str
) -> tuple[str, ...]:
    """Shorten the name of JAX arrays to ``Array``."""
    long, short = "jaxlib._jax.Array", "Array"
    return tuple(part and part.replace(long, short) for part in (signature, returns))


def public_name(text: str) -> str | None:
    """Find a public name from its full name, its definition, its last part, or ``dp.name``."""
    full = "dotphase." + text.removeprefix("dp.").removeprefix("dotphase.")
    return full if full in HOMES else PUBLIC.get(text) or BARE.get(text)


def public_or_literal(
    name: str, rawtext: str, text: str, lineno: int, inliner: Any, *rest: Any
) -> tuple[list[nodes.Node], list[nodes.system_message]]:
    """Render single backquotes in docstrings: a link for a public name, else code."""
    if public_name(text):
        return XRefRole()("py:obj", rawtext, text, lineno, inliner)
    return [nodes.literal(rawtext, text)], []


def add_anchors(app: Sphinx, domain: str, kind: str, content: nodes.Element) -> None:
    """Add anchors under the other names: pages of source code link to any name of the module."""
    for signature in content.parent.findall(desc_signature):
        full = signature.get("fullname", "")
        if domain != "py" or not full:
            continue
        module = signature["module"]
        home = HOMES.get(f"{module}.{full.partition('.')[0]}", f"{module}.").rpartition(".")[0]
        for other in sorted(SHOWN_AS.get(home, ())):
            anchor = f"{other}.{full}"
            taken = app.env.domains["py"].data["objects"].get(anchor)
            if (taken is None or taken.aliased) and anchor not in signature["ids"]:
                signature["ids"].append(anchor)


def find_public(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, contnode: nodes.TextElement
) -> nodes.reference | None:
    """Resolve a reference to the definition or the bare name of a public name."""
    if node.get("refdomain") != "py":
        return None
    name = public_name(str(node.get("reftarget", "")))
    if name is None:
        return None
    domain = env.domains["py"]
    return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", name, node, contnode)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("public-names", PublicNames)
    app.add_directive("public-table", PublicTable)
    # Before Napoleon, which reads the sections.
    app.connect("autodoc-process-docstring", describe_attributes, priority=400)
    app.connect("autodoc-process-signature", shorten)
    app.connect("autodoc-skip-member", skip_fields)
    app.connect("missing-reference", find_public)
    app.connect("object-description-transform", add_anchors)
    app.add_role("public-or-literal", public_or_literal)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
