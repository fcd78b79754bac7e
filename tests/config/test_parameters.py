"""Types of parameters: the same rule for options, TOML and Python."""

import click
import pytest

from dotphase.config.parameters import (
    REQUIRED,
    Choice,
    Flag,
    Integer,
    Log2,
    Number,
    Parameter,
    Text,
    fill_defaults,
    parse_assignments,
    table,
)
from dotphase.errors import InvalidInput

TABLE = table(
    Parameter("alpha", Number(above=0), REQUIRED),
    Parameter("rank", Integer(1), 1),
    Parameter("wide", Flag(), False),
)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [(Number(above=0), "1e-3", 1e-3), (Integer(0), "+7", 7), (Log2(12, 24), "13", 13),
     (Choice(("a", "b")), "b", "b"), (Flag(), "TRUE", True), (Text(), "x", "x")],
)  # fmt: skip
def test_options_and_values_are_equal(kind, text, value):
    assert kind.parse("field", text) == kind.check("field", value) == value
    assert kind.convert(text, None, None) == kind.convert(value, None, None) == value
    assert type(kind.parse("field", text)) is type(value)


@pytest.mark.parametrize(
    ("kind", "text", "value", "rule"),
    [
        (Number(above=0, at_most=1), "nan", float("nan"), "finite number > 0 and <= 1"),
        (Number(at_least=0), "one", True, "finite number >= 0"),
        (Integer(1, 3), "2.0", 2.0, "integer >= 1 and <= 3"),
        (Integer(1), "1_0", "1", "integer >= 1"),
        (Log2(12, 24), "4096", 4096, "log2 of the number of points"),
        (Choice(("a", "b")), "c", 3, "one of a, b"),
        (Flag(), "1", 1, "true or false"),
    ],
)
def test_one_rule_for_text_and_values(kind, text, value, rule):
    for convert, given in ((kind.parse, text), (kind.check, value)):
        with pytest.raises(InvalidInput, match=rule) as caught:
            convert("field", given)
        assert caught.value.field == "field" and "\n" not in str(caught.value)
    with pytest.raises(click.BadParameter, match=rule) as refused:
        kind.convert(text, None, None)
    assert text in refused.value.message


def test_choices_of_a_registry_are_current():
    kind = Choice("dotphase.theory.branches:BRANCHES")
    assert kind.choices[:2] == ("semantic", "positional")
    assert kind.label == f"[{'|'.join(kind.choices)}]"


def test_defaults_are_filled_and_names_checked():
    assert fill_defaults({"alpha": 2}, TABLE, "x") == {"alpha": 2.0, "rank": 1, "wide": False}
    with pytest.raises(InvalidInput, match="alpha = None: must be given for x"):
        fill_defaults({}, TABLE, "x")
    with pytest.raises(InvalidInput, match="is not a parameter of x; did you mean alpha"):
        fill_defaults({"alhpa": 2}, TABLE, "x")


def test_assignments_are_parsed():
    values = parse_assignments(["alpha = 2", "wide=true"], TABLE, "x")
    assert values == {"alpha": 2.0, "wide": True}
    refusals = {
        ("alpha",): "name=value",
        ("rank=1", "rank=2"): "must not give rank twice",
        ("y=1",): "is not a parameter of x",
    }
    for texts, rule in refusals.items():
        with pytest.raises(InvalidInput, match=rule):
            parse_assignments(texts, TABLE, "x")
