"""Numbers of the pages are those of committed data, and the check notices others."""

import pytest

import check_numbers
from page_facts import FACTS


def check(text, exceptions=()):
    return list(check_numbers.unexplained(text, list(exceptions)))


def test_a_measured_number_needs_data():
    assert [each.split()[0] for each in check("alpha_c is 1.2509 here")] == ["1.2509"]
    assert check("24,111 values agree within 3%") and not check("within 3 errors")


def test_settings_names_and_exceptions_are_not_measured():
    assert not check(
        "at omega = .3, alpha = 1.5 and d = 1000, ridge .01".replace("ridge .01", "ridge = .01")
    )
    assert not check("`rtol=2e-3` in 2024 with 2^14 points, $x = 3.14$, arXiv:2402.03902")
    assert not check("it takes 99 minutes", ["99 minutes"])


@pytest.mark.parametrize(("printed", "value", "text"), [
    (".001443", 0.00144321, ".001443"), ("1.25", 1.2509, "1.25"), ("24,111", 24111, "24,111"),
    ("-.5", -0.25, "-.2"), ("0.04", 0.0421, "0.04"),
])  # fmt: skip
def test_a_number_keeps_its_form(printed, value, text):
    assert check_numbers.format_like(printed, value) == text


def test_a_wrong_number_is_corrected_and_an_unknown_fact_refused():
    (value, error) = FACTS["alpha_c"]
    wrong = check_numbers.ANNOTATED.match("1.3000 ± .0001<!--alpha_c-->")
    assert check_numbers.corrected(wrong) == f"{value:.4f} ± {error:.4f}<!--alpha_c-->".replace(
        "± 0.", "± ."
    )
    percent = check_numbers.ANNOTATED.match("1.0%<!--alpha_c.low-->")
    assert check_numbers.corrected(percent) == "0.8%<!--alpha_c.low-->"
    with pytest.raises(KeyError, match="no fact"):
        check_numbers.corrected(check_numbers.ANNOTATED.match("1<!--nothing-->"))
