"""The table of arguments is that of the signatures, which have one order of names."""

import inspect
import re
from itertools import pairwise
from pathlib import Path

import pytest

import dotphase as dp

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "arguments.md"
ROW = re.compile(r"^\| `(dp\.[\w.]+)` \| (.*) \| (.*) \| (.*) \|$", re.MULTILINE)
#: Functions with all these names must be in the table.
FUNCTIONS = ("solve", "solve_many", "curve", "critical", "critical_line", "optimal", "diagram",
             "compare", "dynamics", "online", "train", "amp", "grid", "basins", "analysis.outcomes",
             "analysis.solve_many_broken", "analysis.continue_in_alpha", "analysis.complexity",
             "analysis.landscape", "analysis.model_error")  # fmt: skip


def quoted(text):
    return re.findall(r"`([*\w]+)`", text)


def table():
    return {name: cells for name, *cells in ROW.findall(PAGE.read_text(encoding="utf-8"))}


def order(kind):
    """The order of names that the page states."""
    (paragraph,) = re.findall(rf"^{kind}: (.*?)\.\n", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return quoted(paragraph)


def resolve(name):
    target = dp
    for part in name.split(".")[1:]:
        target = getattr(target, part)
    return target


def arguments(function):
    """Positional arguments, keywords, and the class of the settings."""
    parameters = inspect.signature(function).parameters.values()
    positional = [part.name for part in parameters if part.kind is part.POSITIONAL_OR_KEYWORD]
    keywords = [part.name for part in parameters if part.kind is part.KEYWORD_ONLY]
    keywords += [f"**{part.name}" for part in parameters if part.kind is part.VAR_KEYWORD]
    settings = [part.annotation for part in parameters if part.name == "settings"]
    return positional, keywords, re.findall(r"\w+Settings", " ".join(map(str, settings)))


def in_order(names, reference):
    places = [reference.index(name) for name in names]
    return all(first < second for first, second in pairwise(places))


def test_every_function_is_in_the_table():
    assert list(table()) == [f"dp.{name}" for name in FUNCTIONS]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_signature_is_that_of_the_table(name):
    positional, keywords, settings = arguments(resolve(f"dp.{name}"))
    assert [quoted(cell) for cell in table()[f"dp.{name}"]] == [positional, keywords, settings]
    assert in_order(positional, order("Positional")) and in_order(keywords, order("Keywords"))
    assert keywords[-2:] == ["settings", "**changes"]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_docstring_has_every_argument_in_order(name):
    """Arguments that are described elsewhere share an entry."""
    function = resolve(f"dp.{name}")
    section = inspect.getdoc(function).split("Parameters\n----------\n")[-1]
    if "Parameters are those of" in section:
        return
    section = re.split(r"\n\n[A-Z]\w+\n---", section)[0]
    entries = ", ".join(re.findall(r"^(\S[^:\n]*?)(?: :.*)?$", section, re.MULTILINE))
    positional, keywords, _ = arguments(function)
    assert set(positional + keywords) <= set(re.findall(r"[*\w]+", entries))


def test_names_of_the_page_are_explained():
    text = PAGE.read_text()
    section = text.split("## Names")[1].split("## Order")[0]
    explained = set(
        quoted("".join(line.split("|")[1] for line in section.splitlines() if "|" in line))
    )
    assert explained <= set(order("Positional") + order("Keywords"))
    assert set(order("Positional")) <= explained


def test_a_deviation_is_noticed():
    def deviating(alpha, model, *, settings: "SolverSettings", progress, **changes):
        """Take arguments in another order."""

    positional, keywords, settings = arguments(deviating)
    assert positional == ["alpha", "model"] and settings == ["SolverSettings"]
    assert not in_order(positional, order("Positional"))
    assert not in_order(keywords, order("Keywords"))
