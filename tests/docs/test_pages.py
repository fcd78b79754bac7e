"""The pages say what the program does: their code runs, their messages are the program's."""

import inspect
import re
import tomllib
from pathlib import Path

import pytest

import dotphase as dp
from dotphase._numerics.outcome import Outcome

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = sorted(
    page.relative_to(ROOT).as_posix()
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
    if BLOCK.search(page.read_text(encoding="utf-8"))
)
#: What expensive functions are called with instead of what the page says. The tests of training
#: and message passing have these sizes too, so that nothing is compiled for this test alone.
SMALL = {
    "alpha": 2.0,
    "d": 200,
    "seeds": 1,
    "log2_points": 12,
    "iterations": 2,
    "alphas": [2.0],
    "omegas": [0.3],
    "runs": 1,
    "epochs": 1,
}


@pytest.fixture
def quick(monkeypatch, paper):
    """Public functions at small size, for the model of the paper.

    A page's own model is still built, which calls its teacher and student, and its calls
    are still held to the signatures; what they return is a real result.
    """

    def shrink(function):
        def call(*args, **kwargs):
            signature = inspect.signature(function)
            bound = signature.bind(*args, **kwargs)
            for name, value in SMALL.items():
                if name in signature.parameters:
                    bound.arguments[name] = value
            if isinstance(bound.arguments.get("model"), dp.Model):
                bound.arguments["model"] = paper
            return function(*bound.args, **bound.kwargs)

        return call

    for name in dp._HOMES:
        value = getattr(dp, name)
        if inspect.isfunction(value) and SMALL.keys() & inspect.signature(value).parameters.keys():
            monkeypatch.setattr(dp, name, shrink(value))


@pytest.mark.parametrize("page", PAGES)
def test_python_on_a_page_runs(page, quick, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {"dp": dp, "__name__": "page"}
    blocks = BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    assert blocks
    for number, code in enumerate(blocks):
        exec(compile(code, f"{page}, block {number}", "exec"), names)


def test_the_readme_has_python():
    assert "README.md" in PAGES


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
