"""The figure of `dotphase.compare`."""

from __future__ import annotations

import numpy as np
import pytest

import dotphase as dp
import made_up
from dotphase.figures.parts.style import COLORS
from figure_content import bars, color, is_open, legend_texts, lines_with

SCALE = 0.25  # sigma^2
PANELS = ((0, "train_loss", 1.0), (1, "test_error", 1.0))


@pytest.fixture
def both():
    return made_up.compared()


def test_points_are_training_with_standard_errors(both):
    figure = dp.plot.compare(both)
    for number, part, scale in (*PANELS, (2, "m", SCALE)):
        row = both.sel(source="training", branch="positional")
        values = row[part].where(row["verdict"] == "agrees") / scale
        axis = figure.axes[number]
        lines = lines_with(axis, values)
        (container,) = [bar for bar in axis.containers if bar.lines[0] in lines]
        assert color(container.lines[0]) == COLORS["positional"].lower()
        assert not is_open(container.lines[0])
        expected = (row[f"{part}_stderr"] / scale)[np.isfinite(values)]
        np.testing.assert_allclose(bars(container), expected)


def test_points_off_the_branch_are_plus_signs(both):
    """Open markers are theory that is not trusted, and nothing else."""
    figure = dp.plot.compare(both)
    for number, part, _ in PANELS:
        value = float(both[part].sel(source="training", branch="positional", alpha=2.0))
        (line,) = [
            line for line in lines_with(figure.axes[number], [np.nan, np.nan, np.nan, value])
            if line.get_marker() == "P"
        ]  # fmt: skip
        assert not is_open(line) and color(line) == COLORS["positional"].lower()


def test_differences_have_rings_and_message_passing_crosses(both):
    figure = dp.plot.compare(both)
    for number, part, _ in PANELS:
        axis = figure.axes[number]
        value = float(both[part].sel(source="training", branch="semantic", alpha=1.5))
        rings = [
            line for line in axis.lines if line.get_markersize() == 11 and line.get_xdata().size
        ]
        assert any(
            np.array_equal(ring.get_ydata(), [np.nan, np.nan, value, np.nan], equal_nan=True)
            for ring in rings
        )
        (crosses,) = lines_with(axis, both[part].sel(source="amp", branch="semantic"))
        assert crosses.get_marker() == "x"
    without = both.sel(source=["theory", "training"])
    assert not [line for line in dp.plot.compare(without).axes[0].lines if line.get_marker() == "x"]


def test_lines_are_theory(both):
    theory = both.sel(source="theory", branch="semantic")
    figure = dp.plot.compare(both)
    trusted = theory["train_loss"].where(both["alpha"] > 1)
    (line,) = lines_with(figure.axes[0], trusted)
    assert color(line) == COLORS["semantic"].lower() and line.get_label() == "semantic"
    assert lines_with(figure.axes[1], [0.00197, 0.00197])
    assert legend_texts(figure.axes[2]) == [
        r"$\theta/\sigma^2$, semantic",
        r"$m/\sigma^2$, positional",
    ]


def test_the_legend_names_every_mark(both):
    kind = np.full(both["verdict"].shape, "minimum", dtype="U8")
    kind[0, 1] = "saddle"
    for marked, expected in ((both, False), (both.assign(kind=(both["verdict"].dims, kind)), True)):
        labels = legend_texts(dp.plot.compare(marked))
        marks = {"training, not on the branch", "differs", "message passing", "training, $d = 200$"}
        assert marks | {"replica-symmetric minima", "linear positional layer"} <= set(labels)
        assert ("saddle: training leaves it" in labels) is expected
        assert ("theory not trusted" in labels) is not expected
    agree = both.assign(verdict=both["verdict"].where(False, "agrees"))
    labels = legend_texts(dp.plot.compare(agree))
    assert "training, not on the branch" not in labels and "differs" not in labels


def test_a_single_alpha_is_visible(both):
    axis = dp.plot.compare(both.isel(alpha=[2])).axes[0]
    value = float(both["train_loss"].sel(source="theory", branch="semantic", alpha=1.5))
    assert [line for line in lines_with(axis, [value]) if line.get_marker() == "_"]
