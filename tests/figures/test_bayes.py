"""The figure of test errors and of the Bayes-optimal learner."""

import numpy as np
import pytest

import dotphase as dp
import made_up
from dotphase.figures.parts.lines import THIN_LINE
from dotphase.figures.parts.style import COLORS
from figure_content import color, labelled_lines, legend_texts, lines_with, texts


@pytest.fixture
def axis():
    return dp.plot.bayes(made_up.curve(), made_up.bayes()).axes[0]


def test_all_lines_have_their_values_and_colors(axis):
    curve, lines = made_up.curve(), labelled_lines(axis)
    np.testing.assert_array_equal(lines["Bayes-optimal"].get_ydata(), [0.002, 0.001, 0.0])
    trusted = curve["test_error"].sel(branch="semantic").where(curve["alpha"] > 1.0)
    np.testing.assert_array_equal(lines["attention, semantic minimum"].get_ydata(), trusted)
    positional = curve["test_error"].sel(branch="positional")
    np.testing.assert_array_equal(lines["attention, positional minimum"].get_ydata(), positional)
    assert lines["linear positional layer"].get_ydata() == [0.00197, 0.00197]
    colors = {label: color(line) for label, line in lines.items()}
    assert colors["Bayes-optimal"] == COLORS["bayes"].lower()
    assert colors["attention, positional minimum"] == COLORS["positional"].lower()
    assert legend_texts(axis)[-1] == "theory not trusted"


def test_both_recoveries_are_marked(axis):
    for alpha in (1 / 6, 0.5):
        (line,) = lines_with(axis, [0, 1], [alpha, alpha])
        assert line.get_linestyle() == ":" and color(line) == COLORS["bayes"].lower()
    assert texts(axis) == ["weak\nrecovery", "exact\nrecovery"]


def test_lines_are_thin_where_the_theory_is_not_trusted(axis):
    """Up to the first point that is trusted, and no further."""
    thin = [line.get_ydata() for line in axis.lines if line.get_linewidth() == THIN_LINE]
    (values,) = [value for value in thin if np.isfinite(value).any()]
    np.testing.assert_array_equal(np.isfinite(values), [False, True, True, False])
