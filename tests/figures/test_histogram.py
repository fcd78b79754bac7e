"""Figures of the histogram task, from results that were not trained here."""

from types import SimpleNamespace

import numpy as np
import pytest

import dotphase as dp
from dotphase.errors import InvalidInput


def test_attention_has_a_row_per_network_and_a_column_per_sequence(tmp_path):
    networks = {name: dp.histogram.shipped(name) for name in ("semantic", "positional")}
    texts = ["BBCCDDBBBB", "ABCDEFGHIJ"]
    figure = dp.plot_histogram_attention(networks, texts, tmp_path / "attention.png")
    images = figure.axes[:4]
    assert all(len(axes.images) == 1 for axes in images) and len(figure.axes) == 5
    shown = np.asarray(images[0].images[0].get_array())
    expected = dp.histogram.attention(networks["semantic"], "BBCCDDBBBB")
    np.testing.assert_allclose(shown, expected)
    assert [text.get_text() for text in images[2].get_xticklabels()] == list("BBCCDDBBBB")
    assert (tmp_path / "attention.png").stat().st_size > 5000


def a_result(moved):
    rng = np.random.default_rng(0)
    curves = SimpleNamespace(
        accuracy=np.where(np.arange(6) < 5, rng.uniform(0.9, 1.0, (4, 6)), np.nan),
        train_loss=rng.uniform(0.1, 1.0, (4, 6)),
    )
    return SimpleNamespace(
        trained=curves,
        task=dp.histogram.Task(),
        settings={"target": 0.99},
        mechanisms=("semantic", "positional"),
        rows=lambda name: np.asarray([0, 1] if name == "semantic" else [2, 3]),
        moved=moved,
    )


def test_curves_show_every_run(tmp_path):
    figure = dp.plot_histogram_curves(a_result(None), tmp_path / "curves.svg")
    assert len(figure.axes[0].lines) == 2 * (2 + 1)
    labels = [text.get_text() for text in figure.axes[1].get_legend().get_texts()]
    assert labels == ["semantic", "positional", "target"]


def test_distances_need_a_release(tmp_path):
    far, near = np.asarray([70.0, 71, 67, 68]), np.asarray([0.5, 0.6, 0.3, 0.4])
    moved = SimpleNamespace(from_start=far, after_release=near)
    figure = dp.plot_histogram_distances(a_result(moved), tmp_path / "distances.png")
    heights = [points.get_offsets()[:, 1].tolist() for points in figure.axes[0].collections]
    assert heights == [[70, 71], [0.5, 0.6], [67, 68], [0.3, 0.4]]
    with pytest.raises(InvalidInput, match="release"):
        dp.plot_histogram_distances(
            a_result(SimpleNamespace(from_start=far, after_release=None)), tmp_path / "x.png"
        )


def test_landscape_has_both_lines(tmp_path):
    place = np.linspace(0, 1, 5)
    found = dp.histogram.LossBetween(
        place, 1 + place, 1 - place / 2, 1.5 + place, 1 - place / 3, 9.0, 8.0
    )
    figure = dp.plot_histogram_landscape(found, tmp_path / "landscape.pdf")
    np.testing.assert_allclose(figure.axes[0].lines[1].get_ydata(), 1.5 + place)
    assert found.barrier == 0.0


def test_emergence_shows_scores_of_every_run(tmp_path):
    values = np.random.default_rng(1).uniform(size=(4, 3, 2))
    found = dp.histogram.Emergence(
        dp.histogram.Task(), 100, 0, np.asarray([10, 100, 1000]), *values, seconds=1.0
    )
    figure = dp.plot_histogram_emergence(found, tmp_path / "emergence.png")
    assert len(figure.axes[0].lines) == 3 * (1 + 2)
    np.testing.assert_allclose(figure.axes[0].lines[0].get_ydata(), values[3].mean(axis=1))
