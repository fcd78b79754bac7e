"""What the site does beyond Sphinx: executed blocks, public names, attributes, commands."""

from pathlib import Path

import pytest

import dotphase

pytest.importorskip("sphinx")

from sphinx.errors import ExtensionError

from extensions.executed import FENCE, Page, notebook
from extensions.public_names import (
    GROUPS,
    describe_attributes,
    in_order,
    public_name,
    read_groups,
)

API = Path(__file__).resolve().parents[2] / "docs" / "reference" / "api"


def test_blocks_of_a_page_share_their_names():
    page = Page()
    assert page.execute("x = 2", "here") == ("", None)
    assert page.execute("print(x)\nx + 1", "here") == ("2\n", 3)


def test_a_failing_block_ends_the_build_and_shows_itself():
    with pytest.raises(ExtensionError, match=r"(?s)page\.md:7 failed:.*1 / 0.*ZeroDivisionError"):
        Page().execute("1 / 0", "page.md:7")


def test_a_page_as_a_notebook():
    source = "# Title\n\nSee {doc}`other <there>` and {doc}`this`.\n\n```{run}\nprint(2)\n```\n"
    source += "\n```{run}\n:hidden:\nassert True\n```\n\nThe end.\n\n```{script}\n```\n"
    assert [fence[1] for fence in FENCE.finditer(source)] == ["run", "run", "script"]
    page = Page(source)
    page.blocks, page.printed = ["print(2)"], ["2\n"]
    book = notebook(page)
    assert [cell["cell_type"] for cell in book["cells"]] == ["markdown", "code", "markdown"]
    assert "".join(book["cells"][0]["source"]) == "# Title\n\nSee other and this."
    assert book["cells"][1]["outputs"][0]["text"] == "2\n" and book["nbformat"] == 4
    assert len({cell["id"] for cell in book["cells"]}) == 3


def test_the_theory_opens_with_solve():
    assert GROUPS["theory"][0] == "dotphase.solve" and GROUPS["model"][0] == "dotphase.Model"
    assert in_order(["B", "solve", "a"]) == ["solve", "a", "B"]


def test_every_group_has_its_page_and_its_table():
    tables = (API / "index.rst").read_text(encoding="utf-8")
    for group in GROUPS:
        page = (API / f"{group}.rst").read_text(encoding="utf-8")
        assert f".. public-names:: {group}" in page and f".. public-table:: {group}\n" in tables
    names = {name.split(".")[1] for names in GROUPS.values() for name in names}
    assert names == set(dotphase.__all__)


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
