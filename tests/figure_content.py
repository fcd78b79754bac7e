"""Readers of drawn figures: lines, error bars, legends and colors."""

from __future__ import annotations

import numpy as np
from matplotlib.colors import to_hex


def labelled_lines(axis):
    """Return the labelled lines of an axis by label."""
    return {
        line.get_label(): line for line in axis.lines if not str(line.get_label()).startswith("_")
    }


def legend_texts(owner):
    """Return the texts of the legend of an axis or figure."""
    legend = owner.get_legend() if hasattr(owner, "get_legend") else owner.legends[0]
    return [text.get_text() for text in legend.get_texts()]


def lines_with(axis, values, x=None):
    """Return the lines of an axis whose y (and x) data are `values` (and `x`); NaN equals NaN."""
    return [
        line
        for line in axis.lines
        if _same(line.get_ydata(), values) and (x is None or _same(line.get_xdata(), x))
    ]


def _same(data, values):
    data, values = np.asarray(data, float), np.asarray(values, float)
    return data.shape == values.shape and np.allclose(data, values, equal_nan=True)


def xy(line):
    """Return the data of a line as two rows of floats."""
    return np.array([line.get_xdata(), line.get_ydata()], float)


def color(line):
    """Return the color of a line as a hex string."""
    return to_hex(line.get_color())


def is_open(line, page="#ffffff"):
    """Return True if the markers of a line are filled with the color of the page."""
    return to_hex(line.get_markerfacecolor()) == page


def bars(container):
    """Return the lengths of the error bars of a container, along y or x."""
    (collection,) = container.lines[2]
    ends = np.array([segment for segment in collection.get_segments() if len(segment)])
    return np.abs(ends[:, 1] - ends[:, 0]).max(axis=-1) / 2


def map_values(axis):
    """Return the cells of every color map of an axis; missing cells are NaN."""
    return [
        np.ma.filled(mesh.get_array().astype(float), np.nan)
        for mesh in axis.collections
        if type(mesh).__name__ == "QuadMesh"
    ]


def texts(axis):
    """Return the texts written into an axis."""
    return [text.get_text() for text in axis.texts]
