"""What the site does beyond Sphinx: executed blocks, public names, attributes, commands."""

import pytest

import dotphase

pytest.importorskip("sphinx")

from sphinx.errors import ExtensionError

from extensions.executed import Page
from extensions.public_names import describe_attributes, names_of

GROUPS = {"theory": ["dotphase.theory"], "model": ["dotphase.model.definition"]}


def test_blocks_of_a_page_share_their_names():
    page = Page()
    assert page.execute("x = 2", "here") == ("", None)
    assert page.execute("print(x)\nx + 1", "here") == ("2\n", 3)


def test_a_failing_block_ends_the_build_and_shows_itself():
    with pytest.raises(ExtensionError, match=r"(?s)page\.md:7 failed:.*1 / 0.*ZeroDivisionError"):
        Page().execute("1 / 0", "page.md:7")


def test_every_public_name_belongs_to_one_group():
    groups = [names_of(name, GROUPS) for name in (*GROUPS, "other")]
    assert sorted(name for group in groups for name in group) == sorted(dotphase._HOMES)
    assert "Overlaps" in groups[0] and "Model" in groups[1] and "train" in groups[2]


def test_a_prefix_of_a_module_is_not_its_package():
    assert names_of("theory", {"theory": ["dotphase.theo"]}) == []


def test_attributes_become_a_list():
    lines = ["One.", "", "Attributes", "----------", "a, b : both", "    of them", "", "Notes"]
    lines += ["-----", "c : stays"]
    describe_attributes(None, "class", "x", None, None, lines)
    assert lines[2:7] == [".. rubric:: Attributes", "", "``a``, ``b``", "    both", "    of them"]
    assert lines[-3:] == ["Notes", "-----", "c : stays"]


def test_every_command_has_its_help():
    import click

    from dotphase.cli.commands import COMMANDS
    from dotphase.cli.main import cli
    from extensions.commands import walk

    found = dict(walk(cli, click.Context(cli, info_name="dotphase")))
    assert {path.split()[1] for path in found} == set(COMMANDS)
    assert "dotphase study run" in found
    assert "Example" in found["dotphase solve"]
