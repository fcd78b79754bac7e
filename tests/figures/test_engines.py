"""Figures of training and of message passing."""

from __future__ import annotations

import numpy as np

import dotphase as dp
import made_up


def test_scatter_labels_every_mechanism():
    figure = dp.plot.mechanisms(made_up.training())
    labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert labels == ["positional (2)", "semantic (1)", "uninformed (1)", "chance"]


def test_iterations_show_what_was_measured_and_predicted():
    figure = dp.plot.iterations(made_up.passing())
    lines = [line for line in figure.axes[0].lines if line.get_linestyle() == "-"]
    assert all(np.array_equal(line.get_xdata(), [0, 1, 2]) for line in lines)


def test_the_legend_of_a_comparison_names_every_mark():
    both = made_up.compared()
    kind = np.full(both["verdict"].shape, "minimum", dtype="U8")
    kind[0, 1] = "saddle"
    for marked, there in ((both, False), (both.assign(kind=(both["verdict"].dims, kind)), True)):
        figure = dp.plot.compare(marked)
        labels = [text.get_text() for text in figure.legends[0].get_texts()]
        assert {"training, not on the branch", "differs", "message passing"} <= set(labels)
        assert ("saddle: training leaves it" in labels) is there
    agree = both.assign(verdict=both["verdict"].where(False, "agrees"))
    labels = [text.get_text() for text in dp.plot.compare(agree).legends[0].get_texts()]
    assert "training, not on the branch" not in labels and "differs" not in labels
