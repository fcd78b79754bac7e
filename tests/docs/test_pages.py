"""The pages say what the program does: their messages are the program's, the citation is whole."""

import tomllib
from pathlib import Path

import pytest

from dotphase._numerics.outcome import Outcome

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "message",
    [o.message for o in Outcome if not o.success and o is not Outcome.RUNNING],
)
def test_troubleshooting_knows_every_failure(message):
    page = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    assert message in " ".join(page.split())


def test_the_citation_file_is_complete():
    yaml = pytest.importorskip("yaml")
    cff = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    # Required by the format, and what makes a citation of software useful.
    assert {"cff-version", "message", "title", "authors"} <= set(cff)
    assert cff["cff-version"] == "1.2.0" and cff["type"] == "software"
    assert cff["authors"] == [{"name": "dotphase developers"}]
    assert str(cff["version"]) == project["version"] and cff["license"] == project["license"]
    (paper,) = cff["references"]
    assert {"type", "title", "authors", "year"} <= set(paper)
    assert all({"family-names", "given-names"} == set(author) for author in paper["authors"])
    assert paper["identifiers"][0]["value"] == "arXiv:2402.03902"
    assert paper["url"] == project["urls"]["Paper"]
