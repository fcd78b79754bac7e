"""Tutorials that are executed: the directives ``run`` and ``script``.

The code of a ``run`` block is executed when the page is built, with the names of the earlier blocks
of the page. Its output is shown below it. An exception ends the build. Options:

``figure``
    The last line is a Matplotlib figure, which is shown; the value is its alternative text.
``hidden``
    The block is executed but not shown, as assertions about numbers in the prose.

``script`` gives links to the page as a notebook with its output, and to its code as one file. It
stands before the blocks; the files are written when the page has been read.
"""

from __future__ import annotations

import ast
import io
import json
import re
import time
import traceback
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

logger = logging.getLogger(__name__)

#: Folder of figures, scripts and notebooks, under the folder of the sources.
FOLDER = "_generated"
#: A directive in the source of a page: its name and its content, options first.
FENCE = re.compile(r"^```\{(\w+)\}.*?\n(.*?)^```\n?", re.MULTILINE | re.DOTALL)
#: Roles such as ``{doc}`page```, which notebooks do not support.
ROLE = re.compile(r"\{\w+\}`([^`<]*?)(?: ?<[^`]*>)?`")
#: Links to other pages of the site, which a notebook leaves behind.
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?:)[^)]*\)")


class Page:
    """The names that a page has defined so far, and its code."""

    def __init__(self, source: str = "") -> None:
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self.source = source
        self.blocks: list[str] = []
        self.printed: list[str] = []
        self.figures = 0
        self.downloads = ""

    def execute(self, code: str, location: str) -> tuple[str, Any]:
        """Return the output of the code, and the value of its last line if it is an expression."""
        printed = io.StringIO()
        value = None
        try:
            tree = ast.parse(code, location)
            last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
            with redirect_stdout(printed):
                exec(compile(tree, location, "exec"), self.names)
                if last is not None:
                    expression = ast.Expression(last.value)
                    value = eval(compile(expression, location, "eval"), self.names)
        except Exception as error:
            raise ExtensionError(
                f"the code at {location} failed:\n{code}\n\n{traceback.format_exc()}"
            ) from error
        return printed.getvalue(), value


#: Pages being read, by name.
PAGES: dict[str, Page] = {}


class Run(SphinxDirective):
    """Execute a block of Python."""

    has_content = True
    option_spec: ClassVar[dict[str, Any]] = {
        "figure": directives.unchanged_required,
        "hidden": directives.flag,
    }

    def run(self) -> list[nodes.Node]:
        page = PAGES[self.env.docname]
        code = "\n".join(self.content)
        start_time = time.perf_counter()
        printed, value = page.execute(code, self.get_location())
        logger.info("%s ran for %.1f s", self.get_location(), time.perf_counter() - start_time)
        if "hidden" in self.options:
            return []
        page.blocks.append(code)
        page.printed.append(printed)
        shown: list[nodes.Node] = [_block(code, "python", "executed")]
        if printed:
            shown.append(_block(printed.rstrip("\n"), "text", "printed"))
        if "figure" in self.options:
            shown.append(self._figure(page, value))
        return shown

    def _figure(self, page: Page, figure: Any) -> nodes.Node:
        page.figures += 1
        name = f"{self.env.docname.replace('/', '-')}-{page.figures}.png"
        figure.savefig(_folder(self.env.app) / name, dpi=160, metadata={"Software": None})
        return nodes.image("", uri=f"/{FOLDER}/{name}", alt=self.options["figure"])


class Script(SphinxDirective):
    """Link to the page as a notebook, and to its code."""

    def run(self) -> list[nodes.Node]:
        name = self.env.docname.rsplit("/", 1)[-1].replace("-", "_")
        PAGES[self.env.docname].downloads = name
        line = nodes.paragraph("", "This page as a notebook: ", self._link(f"{name}.ipynb"))
        line += [nodes.Text("; its code as a script: "), self._link(f"{name}.py")]
        return [line]

    def _link(self, name: str) -> nodes.Node:
        # The file must exist when the link is resolved; `_finish` writes its content.
        (_folder(self.env.app) / name).touch()
        link = addnodes.download_reference(
            "", "", refdoc=self.env.docname, reftarget=f"/{FOLDER}/{name}", reftype="download"
        )
        link += nodes.literal(name, name, classes=["xref", "download"])
        return link


def notebook(page: Page) -> dict[str, Any]:
    """Convert the page to a notebook of format 4, with its text, executed blocks and output."""
    cells: list[dict[str, Any]] = []

    def add(kind: str, text: str, **fields: Any) -> None:
        if text.strip():
            cell = {"cell_type": kind, "id": f"cell-{len(cells)}", "metadata": {}}
            cells.append(cell | {"source": text.strip("\n").splitlines(keepends=True)} | fields)

    executed, position = iter(zip(page.blocks, page.printed, strict=True)), 0
    for fence in FENCE.finditer(page.source):
        add("markdown", LINK.sub(r"\1", ROLE.sub(r"\1", page.source[position : fence.start()])))
        position = fence.end()
        if fence[1] == "run" and ":hidden:" not in fence[2]:
            code, printed = next(executed, ("", ""))
            shown = [{"output_type": "stream", "name": "stdout", "text": printed}]
            add("code", code, execution_count=None, outputs=shown if printed else [])
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def _block(text: str, language: str, kind: str) -> nodes.Node:
    return nodes.literal_block(text, text, language=language, classes=[kind])


def _folder(app: Sphinx) -> Path:
    folder = Path(app.srcdir) / FOLDER
    folder.mkdir(exist_ok=True)
    return folder


def _begin(app: Sphinx, docname: str, source: list[str]) -> None:
    PAGES[docname] = Page(source[0])


def _finish(app: Sphinx, doctree: nodes.document) -> None:
    """Write the notebook and the script of a page that links to them."""
    page = PAGES[app.env.docname]
    if page.downloads:
        book = json.dumps(notebook(page), indent=1, ensure_ascii=False)
        contents = {"ipynb": book + "\n", "py": "\n\n".join(page.blocks) + "\n"}
        for suffix, text in contents.items():
            (_folder(app) / f"{page.downloads}.{suffix}").write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("run", Run)
    app.add_directive("script", Script)
    app.connect("source-read", _begin)
    app.connect("doctree-read", _finish)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
