"""How results read."""

import pytest

from dotphase.config.formatting import Description, Printable, format_value, format_with_model_error


@pytest.mark.parametrize(
    ("value", "error", "shown"),
    [(0.114801, 0.000123, "0.11480 ± 0.00012"), (1.5, None, "1.5"), (1.5, 0.0, "1.5"),
     (0.0, 0.0, "0"), (None, None, "none"), (float("nan"), 1.0, "none"),
     (5.03e-6, 3.5e-7, "5.03e-06 ± 3.5e-07"), (1.2, float("nan"), "1.2 ± nan"),
     (1.0, 2e-16, "1"), (0.25, 3e-12, "0.25"), (0.0046512, 0.014, "0.0047 ± 0.0140")],
)  # fmt: skip
def test_a_number_has_the_digits_of_its_error(value, error, shown):
    assert format_value(value, error) == shown


def test_the_error_of_the_theory_is_told_where_it_counts():
    assert format_with_model_error(1.0, 0.01, 0.0001) == "1.000 ± 0.010"
    assert "± 0.020 (symmetry breaking)" in format_with_model_error(1.0, 0.01, 0.02)


def test_columns_of_a_table_are_cells():
    table = (("step", "loss"), ("0", "1.00 ± 0.01"), ("10", "<2>"))
    description = Description("descent", (("alpha", "2"),), ("fine",), table)
    assert description.text().split("\n")[2:] == [
        "  step         loss", "     0  1.00 ± 0.01", "    10          <2>", "  fine"]  # fmt: skip
    page = description.html()
    assert "<tr><th>step</th><th>loss</th></tr>" in page
    assert "<tr><td>10</td><td>&lt;2&gt;</td></tr>" in page
    assert page.count("<table>") == 2 and Description("x").html().count("<table>") == 1


class Result(Printable):
    description = Description("a <result>", (("q", "1 ± 2"),), ("NOT TRUSTED: why", "fine"))


def test_one_description_for_terminal_and_notebook():
    lines = str(Result()).split("\n")
    assert lines[0] == "a <result>" and lines[1].split() == ["q", "1", "±", "2"]
    assert lines[2] == "  NOT TRUSTED: why"
    page = Result()._repr_html_()
    assert "a &lt;result&gt;" in page and "<td" in page
    assert page.count("color:") == 1  # the warning alone
