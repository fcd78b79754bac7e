"""The pages agree with the program: messages, file names, data; the citation is complete."""

import re
import tomllib
from pathlib import Path

import pytest

from dotphase.numerics.outcome import Outcome
from dotphase.storage.files import read_dataset

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "message",
    [o.message for o in Outcome if not o.success and o is not Outcome.RUNNING],
)
def test_troubleshooting_explains_every_failure(message):
    page = (ROOT / "docs" / "how-to" / "troubleshooting.md").read_text(encoding="utf-8")
    assert message in " ".join(page.split())


def test_the_files_that_contributing_names_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    # Fenced blocks have the files that a contributor adds.
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    names = re.findall(r"`([\w/]+\.(?:py|toml|html))`", prose)
    package = ROOT / "src" / "dotphase"
    folders = (ROOT, package, package / "theory")
    assert len(names) > 20
    assert not [name for name in names if not any((path / name).is_file() for path in folders)]


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


def test_the_table_of_critical_lines_is_that_of_the_data():
    lines = read_dataset(ROOT / "docs" / "data" / "critical_lines.nc")
    page = (ROOT / "docs" / "explanation" / "trust.md").read_text(encoding="utf-8")
    table = (
        page.split("| omega | alpha_c | shift by breaking |")[1].split("\n\n")[0].splitlines()[2:]
    )
    assert len(table) == lines.sizes["omega"] == 10
    columns = ("alpha_c", "alpha_c_shift", "alpha_l", "alpha_l_shift")
    for text, omega in zip(table, lines["omega"].values, strict=True):
        first, *cells, trusted = (cell.strip() for cell in text.strip("|").split("|"))
        row = lines.sel(omega=omega)
        assert float(first) == pytest.approx(omega)
        assert trusted == ("yes" if row["trusted"] else "no")
        for name, cell in zip(columns, cells, strict=True):
            printed = [float(part) for part in cell.split("±")] if "±" in cell else [0.0, 0.0]
            stored = [float(row[name]), float(row[f"{name}_stderr"])]
            assert printed == pytest.approx(stored, abs=6e-5), (omega, name)
