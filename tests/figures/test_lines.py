"""Parts of figures: a branch with its states, means over data sets, baselines."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

import made_up
from dotphase.figures.parts import lines
from dotphase.figures.parts.style import page_color, theme
from figure_content import bars, color, is_open, labelled_lines, texts

BLUE = "#0072b2"
NAN = np.nan


@pytest.fixture
def axis():
    return Figure().subplots()


@pytest.fixture
def branch():
    """Semantic branch: missing, not trusted, trusted, trusted."""
    return made_up.curve().sel(branch="semantic")


def drawn(axis, branch, **hollow):
    style = {"hollow": {"marker": "s"} | hollow, "color": BLUE, "marker": "o", "label": "theory"}
    untrusted = lines.plot_branch(axis, branch, branch["train_loss"], **style)
    return untrusted, [line.get_ydata() for line in axis.lines]


def test_states_of_a_branch_have_their_own_lines(axis, branch):
    untrusted, (solid, thin, markers) = drawn(axis, branch)
    assert untrusted
    np.testing.assert_array_equal(solid, [NAN, NAN, 0.0031, 0.0036])
    np.testing.assert_array_equal(thin, [NAN, 0.0023, 0.0031, NAN])  # up to a trusted neighbor
    np.testing.assert_array_equal(markers, [NAN, 0.0023, NAN, NAN])
    first, second, last = axis.lines
    assert {color(line) for line in axis.lines} == {BLUE}
    assert (first.get_marker(), second.get_marker(), last.get_marker()) == ("o", "", "s")
    assert second.get_linewidth() == lines.THIN_LINE < first.get_linewidth()
    assert is_open(last) and not is_open(first) and last.get_linestyle() == "None"
    assert list(labelled_lines(axis)) == ["theory"]


def test_open_markers_have_the_color_of_the_page(axis, branch):
    with theme("dark"):
        drawn(axis, branch)
        assert is_open(axis.lines[-1], page_color().lower()) and page_color() != "#FFFFFF"


def test_a_trusted_branch_has_no_open_markers(axis, branch):
    untrusted, (solid, thin, markers) = drawn(axis, branch.assign(trusted=branch["on_branch"]))
    assert not untrusted
    np.testing.assert_array_equal(solid, [NAN, 0.0023, 0.0031, 0.0036])
    assert np.isnan(markers).all()
    np.testing.assert_array_equal(thin, [NAN, 0.0023, NAN, NAN])


def test_saddles_are_dotted_with_crosses(axis, branch):
    kind = ("alpha", ["missing", "saddle", "saddle", "minimum"])
    untrusted, (solid, _, saddle, markers) = drawn(axis, branch.assign(kind=kind))
    assert not untrusted and np.isnan(markers).all()
    np.testing.assert_array_equal(solid, [NAN, NAN, NAN, 0.0036])
    np.testing.assert_array_equal(saddle, [NAN, 0.0023, 0.0031, NAN])
    assert (axis.lines[2].get_linestyle(), axis.lines[2].get_marker()) == (":", "x")


def test_loss_gap_is_plotted_where_both_branches_are_minima(axis):
    curve = made_up.curve()
    lines.plot_loss_gap(axis, curve, color=BLUE)
    np.testing.assert_allclose(axis.lines[0].get_ydata(), [NAN, NAN, -0.0002, -0.0009])
    np.testing.assert_allclose(axis.lines[2].get_ydata(), [NAN, 0.0001, NAN, NAN])


def test_seed_means_have_standard_errors(axis):
    values = lines.squeeze_parameter(made_up.runs())["train_loss"].sel(start="positional")
    lines.plot_seed_means(axis, values, fmt="o")
    (container,) = axis.containers
    np.testing.assert_array_equal(container.lines[0].get_ydata(), values.mean("seed"))
    np.testing.assert_allclose(bars(container), values.std("seed", ddof=1) / np.sqrt(3))


def test_a_single_seed_has_no_error_bars(axis):
    values = lines.squeeze_parameter(made_up.runs())["train_loss"].sel(start="positional")
    lines.plot_seed_means(axis, values.isel(seed=[0]), fmt="o")
    assert axis.containers[0].lines[2] == ()


def test_baseline_is_skipped_where_it_is_undefined(axis):
    lines.plot_linear_baseline(axis, NAN)
    assert not axis.lines
    lines.plot_linear_baseline(axis, 0.002)
    assert axis.lines[0].get_ydata() == [0.002, 0.002] and color(axis.lines[0]) == "#cc79a7"


def test_message_passing_names_peaks_above_the_axis(axis):
    predicted = np.array([0.1, 2.5, 0.2, 0.2])
    rows = {name: (predicted / (k + 1), predicted, 0 * predicted) for k, name in enumerate("qm")}
    rows["theta"] = (0 * predicted,) * 3
    lines.plot_message_passing(axis, [0, 1, 2, 3], rows, 0.5)
    assert axis.get_ylim() == (0, pytest.approx(1.65 * 0.4))
    peaks = (
        r"above the axis: $q/\sigma^2$ = 5.00 at iteration 1; $|m|/\sigma^2$ = 2.50 at iteration 1"
    )
    assert texts(axis) == [peaks]
