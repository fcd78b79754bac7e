"""Figures of the histogram task, from made-up results."""

from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.colors import to_hex

import dotphase as dp
import made_up
from dotphase.errors import InvalidInput
from dotphase.figures.parts.style import COLORS
from figure_content import color, labelled_lines, legend_texts, lines_with, texts, xy


def test_attention_has_a_row_per_network_and_a_column_per_sequence():
    networks = {name: dp.histogram.shipped(name) for name in ("semantic", "positional")}
    figure = dp.plot.histogram_attention(networks, ["BBCCDDBBBB", "ABCDEFGHIJ"])
    images = figure.axes[:4]
    assert all(len(axes.images) == 1 for axes in images) and len(figure.axes) == 5
    shown = np.asarray(images[0].images[0].get_array())
    expected = dp.histogram.attention(networks["semantic"], "BBCCDDBBBB")
    np.testing.assert_allclose(shown, expected)
    assert [text.get_text() for text in images[2].get_xticklabels()] == list("BBCCDDBBBB")
    assert texts(images[0]) == [f"{100 * w:.0f}" for w in expected.ravel() if w >= 0.005]
    for axis, name in ((images[0], "semantic"), (images[2], "positional")):
        assert axis.get_ylabel() == name
        assert axis.yaxis.label.get_color() == COLORS[name]


def test_curves_are_the_runs_and_their_median():
    result = made_up.histogram()
    loss, wrong = dp.plot.histogram_curves(result).axes
    floor = 0.5 / (0.3 * result.task.samples * result.task.length)
    panels = (
        (loss, result.trained.train_loss),
        (wrong, np.maximum(1 - result.trained.accuracy, floor)),
    )
    for axis, values in panels:
        for name in ("semantic", "positional"):
            rows = values[result.rows(name)]
            for row in (*rows, np.median(rows, axis=0)):
                (line,) = lines_with(axis, row, np.arange(1, 7))
                assert color(line) == COLORS[name].lower()
        assert (axis.get_xlabel(), axis.get_yscale()) == ("epoch", "log")
    assert lines_with(wrong, [0.01, 0.01]) and not lines_with(loss, [0.01, 0.01])
    runs = "median and 2 runs"
    assert legend_texts(wrong) == [f"semantic, {runs}", f"positional, {runs}", "target"]


def test_distances_need_a_release():
    result = made_up.histogram()
    figure = dp.plot.histogram_distances(result)
    heights = [points.get_offsets()[:, 1].tolist() for points in figure.axes[0].collections]
    assert heights == [[70, 71], [0.5, 0.6], [67, 68], [0.3, 0.4]]
    colors = [to_hex(points.get_facecolor()[0]) for points in figure.axes[0].collections]
    assert colors == [COLORS[name].lower() for name in ("semantic",) * 2 + ("positional",) * 2]
    assert texts(figure.axes[0]) == ["70.5", "0.55", "67.5", "0.35"]
    assert legend_texts(figure.axes[0]) == ["semantic", "positional"]
    result.distances = SimpleNamespace(summed_after_release=None)
    with pytest.raises(InvalidInput, match="release"):
        dp.plot.histogram_distances(result)


def test_landscape_has_both_lines_and_marked_ends():
    result = made_up.landscape()
    panels = (
        (result.loss, result.aligned_loss, "log"),
        (result.accuracy, result.aligned_accuracy, "linear"),
    )
    figure = dp.plot.histogram_landscape(result)
    for axis, (direct, aligned, scale) in zip(figure.axes, panels, strict=True):
        lines = labelled_lines(axis)
        np.testing.assert_allclose(xy(lines["as trained"]), [result.position, direct])
        np.testing.assert_allclose(xy(lines["symmetries aligned"]), [result.position, aligned])
        for end, name in enumerate(("semantic", "positional")):
            (point,) = lines_with(axis, [direct[-end]], [end])
            assert color(point) == COLORS[name].lower()
        assert axis.get_yscale() == scale
        ticks = [tick.get_text() for tick in axis.get_xticklabels()]
        assert ticks == ["semantic", "halfway", "positional"]
    assert legend_texts(figure.axes[0]) == ["as trained", "symmetries aligned"]


def test_emergence_has_the_scores_of_every_run():
    result = made_up.emergence()
    axis = dp.plot.histogram_emergence(result).axes[0]
    curves = {
        "semantic score": ("semantic", result.semantic_score),
        "positional score": ("positional", result.positional_score),
        "held-out accuracy": ("uninformed", result.accuracy),
    }
    for label, (name, values) in curves.items():
        mean = labelled_lines(axis)[label]
        np.testing.assert_allclose(xy(mean), [result.samples, values.mean(axis=1)])
        for column in values.T:
            (points,) = lines_with(axis, column, result.samples)
            assert color(points) == color(mean) == COLORS[name].lower()
    assert axis.get_title() == "free networks, 100 steps" and axis.get_xscale() == "log"
