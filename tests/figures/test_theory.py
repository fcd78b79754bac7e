"""Figures of the landscape, of the complexity and of the model error."""

from __future__ import annotations

import numpy as np
import pytest

import dotphase as dp
import made_up
from dotphase.figures.parts.style import COLORS
from figure_content import bars, color, is_open, labelled_lines, legend_texts, xy


def test_landscape_has_contours_minima_and_hatching():
    surface = made_up.loss_surface()
    figure = dp.plot.landscape(surface)
    axis = figure.axes[0]
    minima = labelled_lines(axis)["minima"]
    assert (minima.get_xdata(), minima.get_ydata()) == ([0.2], [0.0]) and is_open(minima)
    assert legend_texts(axis) == ["hatched: theory not trusted", "minima"]
    levels = axis.collections[0].levels
    assert levels[0] <= surface.loss.min() and levels[-1] >= surface.loss.max()
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("$m$", r"$\theta$")
    assert axis.get_title() == r"$\alpha = 2$"
    surface.trusted[:] = True
    assert legend_texts(dp.plot.landscape(surface).axes[0]) == ["minima"]


def test_complexity_has_its_values_with_errors():
    curve = made_up.complexity()
    count, free_energy, by_loss = dp.plot.complexity(curve).axes
    expected = (
        (count, curve.parisi[1:], 1e4 * curve.complexity[1:], 1e4 * curve.stderr["complexity"][1:]),
        (free_energy, curve.parisi[1:], 1e6 * (curve.free_energy - curve.free_energy[0])[1:],
         1e6 * curve.stderr["free_energy"][1:]),
        # From the largest complexity on.
        (by_loss, 1e6 * (curve.energy - curve.free_energy.max())[2:], 1e4 * curve.complexity[2:],
         1e4 * curve.stderr["complexity"][2:]),
    )  # fmt: skip
    for axis, x, y, error in expected:
        (container,) = axis.containers
        np.testing.assert_allclose(xy(container.lines[0]), [x, y])
        np.testing.assert_allclose(bars(container), error)
        assert color(container.lines[0]) == COLORS["positional"].lower()
        assert axis.get_ylim()[1] == pytest.approx(1.6 * np.abs(y).max())
    assert (count.get_xscale(), free_energy.get_xscale(), by_loss.get_xscale()) == (
        "log",
        "log",
        "linear",
    )


def test_model_error_is_filled_for_the_model_of_the_paper():
    dataset = made_up.model_errors()
    loss, overlap, error = dp.plot.model_error(dataset).axes
    assert [axis.get_title() for axis in (loss, overlap, error)] == [
        "training loss", "overlap (theta or m)", "test error",
    ]  # fmt: skip
    rows = dataset.sel(result="train_loss")
    styles = [("semantic", COLORS["semantic"]), ("positional", COLORS["positional"])]
    for point, (branch, face) in enumerate([*styles, ("semantic", "none")]):
        (container,) = [
            container
            for container in loss.containers
            if color(container.lines[0]) == COLORS[branch].lower()
            and container.lines[0].get_markerfacecolor() == face
        ]
        expected = [[rows["estimated"][point]], [abs(rows["measured"][point])]]
        np.testing.assert_allclose(xy(container.lines[0]), expected)
    assert loss.get_xlim() == loss.get_ylim() == (1e-6, 1.0)
    assert loss.get_xscale() == loss.get_yscale() == "log"
