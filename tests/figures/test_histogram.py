"""Figures of the histogram task, from results that were not trained here."""

from types import SimpleNamespace

import numpy as np
import pytest

import dotphase as dp
import made_up
from dotphase.errors import InvalidInput


def test_attention_has_a_row_per_network_and_a_column_per_sequence():
    networks = {name: dp.histogram.shipped(name) for name in ("semantic", "positional")}
    figure = dp.plot.histogram_attention(networks, ["BBCCDDBBBB", "ABCDEFGHIJ"])
    images = figure.axes[:4]
    assert all(len(axes.images) == 1 for axes in images) and len(figure.axes) == 5
    shown = np.asarray(images[0].images[0].get_array())
    expected = dp.histogram.attention(networks["semantic"], "BBCCDDBBBB")
    np.testing.assert_allclose(shown, expected)
    assert [text.get_text() for text in images[2].get_xticklabels()] == list("BBCCDDBBBB")


def test_curves_show_every_run():
    figure = dp.plot.histogram_curves(made_up.histogram())
    assert len(figure.axes[0].lines) == 2 * (2 + 1)
    labels = [text.get_text() for text in figure.axes[1].get_legend().get_texts()]
    runs = "median and 2 runs"
    assert labels == [f"semantic, {runs}", f"positional, {runs}", "target"]


def test_distances_need_a_release():
    result = made_up.histogram()
    figure = dp.plot.histogram_distances(result)
    heights = [points.get_offsets()[:, 1].tolist() for points in figure.axes[0].collections]
    assert heights == [[70, 71], [0.5, 0.6], [67, 68], [0.3, 0.4]]
    result.moved = SimpleNamespace(summed_after_release=None)
    with pytest.raises(InvalidInput, match="release"):
        dp.plot.histogram_distances(result)


def test_landscape_has_both_lines():
    found = made_up.landscape()
    figure = dp.plot.histogram_landscape(found)
    np.testing.assert_allclose(figure.axes[0].lines[1].get_ydata(), 1.5 + found.place)


def test_emergence_shows_scores_of_every_run():
    found = made_up.emergence()
    figure = dp.plot.histogram_emergence(found)
    assert len(figure.axes[0].lines) == 3 * (1 + 2)
    shown = figure.axes[0].lines[0].get_ydata()
    np.testing.assert_allclose(shown, found.semantic_score.mean(axis=1))
