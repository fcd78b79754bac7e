"""The help of every command of the command line: the directive ``commands``."""

from __future__ import annotations

from collections.abc import Iterator

import click
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from dotphase.cli.main import cli


def walk(command: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    """Yield every command with its help; of a group, its commands."""
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from walk(child, click.Context(child, info_name=name, parent=context))
        return
    context.max_content_width = 88
    yield context.command_path, command.get_help(context)


class Commands(SphinxDirective):
    """One section for each command."""

    def run(self) -> list[nodes.Node]:
        sections: list[nodes.Node] = []
        top = click.Context(cli, info_name="dotphase", terminal_width=88, show_default=True)
        for path, text in walk(cli, top):
            section = nodes.section(ids=[path.replace(" ", "-")])
            section += nodes.title(path, path)
            section += nodes.literal_block(text, text, language="text")
            sections.append(section)
        return sections


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
