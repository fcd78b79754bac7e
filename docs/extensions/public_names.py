"""The API reference, from the package itself: every public name once, by where it lives.

``.. public-names:: GROUP`` documents the names whose home is listed under that group in
``public_name_groups`` of the configuration, and ``.. public-names:: other`` those that no group
claims, so that a new name is documented without a change here. ``.. public-table:: GROUP`` lists
them with the first line of each.
"""

from __future__ import annotations

import inspect
import re
from abc import ABC, abstractmethod
from typing import Any

from docutils import nodes
from sphinx.addnodes import desc_signature, pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.roles import XRefRole
from sphinx.util.docutils import SphinxDirective

import dotphase

OTHER = "other"
#: ``name : words`` in a section of attributes: the words are a description, not a type.
ATTRIBUTE = re.compile(r"^(\w[\w, ]*?) : (.+)$")


def names_of(group: str, groups: dict[str, list[str]]) -> list[str]:
    """Public names of a group, functions after classes."""

    def belongs(name: str, homes: list[str]) -> bool:
        home = dotphase._HOMES[name]
        return any(home == one or home.startswith(one + ".") for one in homes)

    if group == OTHER:
        claimed = [home for homes in groups.values() for home in homes]
        names = [name for name in dotphase._HOMES if not belongs(name, claimed)]
    else:
        names = [name for name in dotphase._HOMES if belongs(name, groups[group])]
    return sorted(names, key=lambda name: (not name[0].isupper(), name))


class _Generated(SphinxDirective, ABC):
    """Content in reStructuredText that is written by `lines`."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        names = names_of(self.arguments[0], self.config.public_name_groups)
        text = self.lines(names) if names else ["Nothing at present."]
        return self.parse_text_to_nodes("\n".join(text), allow_section_headings=False)

    @abstractmethod
    def lines(self, names: list[str]) -> list[str]:
        """What is shown of the names."""


class PublicNames(_Generated):
    def lines(self, names: list[str]) -> list[str]:
        lines = []
        for name in names:
            directive, options = _directive(getattr(dotphase, name))
            lines += [f".. {directive}:: dotphase.{name}", *(f"   {one}" for one in options), ""]
        return lines


class PublicTable(_Generated):
    def lines(self, names: list[str]) -> list[str]:
        return [
            ".. autosummary::",
            "   :nosignatures:",
            "",
            *(f"   ~dotphase.{name}" for name in names),
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
    """A section of attributes becomes a list of names with their descriptions."""
    result: list[str] = []
    inside = False
    for number, line in enumerate(lines):
        if number + 1 < len(lines) and lines[number + 1].startswith("---"):
            inside = line.strip() == "Attributes"
            result += [".. rubric:: Attributes", ""] if inside else [line]
            continue
        match = ATTRIBUTE.match(line) if inside else None
        if match:
            names = ", ".join(f"``{one}``" for one in match[1].split(", "))
            result += [names, f"    {match[2]}"]
        elif not (inside and line.startswith("---")):
            result.append(line)
    lines[:] = result


def skip_fields(app: Sphinx, what: str, name: str, obj: Any, skip: bool, options: Any) -> Any:
    """Fields of named tuples say nothing beyond what the section of attributes says."""
    doc = getattr(obj, "__doc__", None) or ""
    return True if doc.startswith("Alias for field number") else None


def shorten(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, signature: str, returns: str
) -> tuple[str, ...]:
    """Arrays by the name that programs know them by."""
    long, short = "jaxlib._jax.Array", "Array"
    return tuple(part and part.replace(long, short) for part in (signature, returns))


def public_or_literal(
    name: str, rawtext: str, text: str, lineno: int, inliner: Any, *rest: Any
) -> tuple[list[nodes.Node], list[nodes.system_message]]:
    """Single backquotes in docstrings: a link for a public name, plain code for anything else."""
    if text.removeprefix("dotphase.") in dotphase._HOMES:
        return XRefRole()("py:obj", rawtext, text, lineno, inliner)
    return [nodes.literal(rawtext, text)], []


def add_anchors(app: Sphinx, domain: str, kind: str, content: nodes.Element) -> None:
    """Anchors under the other name too, public or home: pages of source link to either."""
    for signature in content.parent.findall(desc_signature):
        full = signature.get("fullname", "")
        if domain != "py" or not full:
            continue
        home = dotphase._HOMES.get(full.split(".")[0])
        other = f"{home}.{full}" if signature["module"] == "dotphase" else f"dotphase.{full}"
        taken = app.env.domains["py"].data["objects"].get(other)
        if (taken is None or taken.aliased) and other not in signature["ids"]:
            signature["ids"].append(other)


def find_public(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, contnode: nodes.TextElement
) -> nodes.reference | None:
    """A reference to the home of a public name, or to its bare name, leads to the public name."""
    if node.get("refdomain") != "py":
        return None
    target = str(node.get("reftarget", ""))
    home, _, name = target.rpartition(".")
    if name not in dotphase._HOMES or home not in ("", dotphase._HOMES[name]):
        return None
    domain = env.domains["py"]
    return domain.resolve_xref(
        env, node["refdoc"], app.builder, "obj", f"dotphase.{name}", node, contnode
    )


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_config_value("public_name_groups", {}, "env")
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
