"""What the site does beyond Sphinx: executed blocks, public names, attributes, commands."""

from pathlib import Path

import pytest

import dotphase

pytest.importorskip("sphinx")

from sphinx.errors import ExtensionError

from extensions.executed import Page
from extensions.public_names import GROUPS, describe_attributes, public_name, read_groups

API = Path(__file__).resolve().parents[2] / "docs" / "api"


def test_blocks_of_a_page_share_their_names():
    page = Page()
    assert page.execute("x = 2", "here") == ("", None)
    assert page.execute("print(x)\nx + 1", "here") == ("2\n", 3)


def test_a_failing_block_ends_the_build_and_shows_itself():
    with pytest.raises(ExtensionError, match=r"(?s)page\.md:7 failed:.*1 / 0.*ZeroDivisionError"):
        Page().execute("1 / 0", "page.md:7")


def test_every_group_has_its_page_and_its_table():
    tables = (API / "index.rst").read_text(encoding="utf-8")
    for group in GROUPS:
        page = (API / f"{group}.rst").read_text(encoding="utf-8")
        assert f".. public-names:: {group}" in page and f".. public-table:: {group}\n" in tables
    names = {name.split(".")[1] for names in GROUPS.values() for name in names}
    assert names == set(dotphase._HOMES)


def test_groups_are_the_comments_of_the_stub():
    text = (
        "# One thing\nfrom a import b as b\nfrom a import c as d\n# Modules\nfrom e import f as f"
    )
    assert read_groups(text) == {"one-thing": ["b", "d"], "modules": ["f"]}


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("solve", "dotphase.solve"),
        ("dotphase.solve", "dotphase.solve"),
        ("dp.plot.curve", "dotphase.plot.curve"),
        ("curve", "dotphase.curve"),
        ("dotphase.figures.curve.curve", "dotphase.plot.curve"),
        ("Training", "dotphase.results.Training"),
        ("dotphase.slove", None),
    ],
)
def test_names_that_mean_a_public_one(text, meant):
    assert public_name(text) == meant


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
