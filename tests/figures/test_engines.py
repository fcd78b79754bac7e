"""Figures of training and of message passing."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from dotphase.figures.iterations import plot_iterations
from dotphase.figures.scatter import plot_mechanisms


def test_scatter_labels_every_mechanism(paper, tmp_path):
    found = ["semantic", "positional", "positional", "uninformed"]
    runs = [
        SimpleNamespace(m=0.1 * k, theta=0.02 * k, q=0.05, mechanism=name, diverged=False)
        for k, name in enumerate(found)
    ]
    runs.append(SimpleNamespace(m=9.0, theta=9.0, q=9.0, mechanism="mixed", diverged=True))
    training = SimpleNamespace(
        runs=runs, model=paper, d=100, start="random", optimizer="adam", alpha=2.0
    )
    figure = plot_mechanisms(training, tmp_path / "scatter.png")
    labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert labels == ["positional (2)", "semantic (1)", "uninformed (1)", "chance"]
    assert (tmp_path / "scatter.png").stat().st_size > 1000


def test_iterations_show_what_was_measured_and_predicted(tmp_path):
    rows = [
        {
            "iteration": k,
            "measured": {"q": 0.1, "m": 0.0, "theta": 0.2},
            "stderr": {"q": None, "m": None, "theta": None},
            "predicted": {"q": 0.1, "m": 0.0, "theta": 0.2} if k < 3 else None,
        }
        for k in range(5)
    ]
    result = SimpleNamespace(iterations=rows, runs=[0], start="semantic", d=100, alpha=2.0)
    figure = plot_iterations(result, tmp_path / "iterations.svg")
    lines = [line for line in figure.axes[0].lines if line.get_linestyle() == "-"]
    assert all(np.array_equal(line.get_xdata(), [0, 1, 2]) for line in lines)
