"""Tables of verdicts: the verdict in the second column, its reason in a note below the table.

A report compares numbers in tables whose last columns are ``verdict`` and ``why``. Reasons are long
and often repeated. On the site each is a numbered note under the table.
"""

from __future__ import annotations

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

VERDICT, WHY = "verdict", "why"


class VerdictTables(SphinxTransform):
    """Rearrange tables with columns ``verdict`` and ``why``."""

    default_priority = 300

    def apply(self, **kwargs: object) -> None:
        for table in list(self.document.findall(nodes.table)):
            head = next(iter(table.findall(nodes.thead)), None)
            names = [entry.astext() for entry in head[0]] if head is not None else []
            if {VERDICT, WHY} <= set(names):
                rearrange(table, names)


def rearrange(table: nodes.table, names: list[str]) -> None:
    """Move the verdict to the second column, and the reasons below the table."""
    why, verdict = names.index(WHY), names.index(VERDICT)
    rest = [index for index in range(len(names)) if index not in (why, verdict)]
    order = [rest[0], verdict, *rest[1:]]
    group = table[0]
    group["cols"] = len(order)
    widths = [node for node in group if isinstance(node, nodes.colspec)]
    group.remove(widths[-1])
    reasons: dict[str, tuple[int, nodes.entry]] = {}
    for row in list(table.findall(nodes.row)):
        cells = list(row)
        if isinstance(row.parent, nodes.tbody) and cells[why].astext():
            number, _ = reasons.setdefault(cells[why].astext(), (len(reasons) + 1, cells[why]))
            mark = f" {number}"
            paragraph = next(iter(cells[verdict].findall(nodes.paragraph)), cells[verdict])
            paragraph += nodes.superscript(mark, mark)
        row.clear()
        row.extend(cells[index] for index in order)
    table["classes"].append("verdicts")
    if reasons:
        notes = nodes.enumerated_list(classes=["reasons"], enumtype="arabic", prefix="", suffix=".")
        for _, entry in reasons.values():
            notes += nodes.list_item("", *(child.deepcopy() for child in entry.children))
        table.parent.insert(table.parent.index(table) + 1, notes)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_transform(VerdictTables)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
