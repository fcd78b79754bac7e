"""Figures of trained students, message passing, descents and attention."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from matplotlib.colors import to_hex

import dotphase as dp
import made_up
from dotphase.experiments.training.basins import basin_shares
from dotphase.figures.parts.style import COLORS
from figure_content import bars, color, is_open, labelled_lines, legend_texts, lines_with, texts, xy


def test_mechanisms_are_points_by_mechanism():
    training = made_up.training()
    axis = dp.plot.mechanisms(training).axes[0]
    assert legend_texts(axis) == ["positional (2)", "semantic (1)", "uninformed (1)", "chance"]
    for points, name in zip(
        axis.collections, ("positional", "semantic", "uninformed"), strict=True
    ):
        runs = [run for run in training.runs if run.mechanism == name]
        expected = [(run.m / 0.25, run.theta / 0.25) for run in runs]
        np.testing.assert_allclose(points.get_offsets(), expected)
        assert to_hex(points.get_facecolor()[0]) == COLORS[name].lower()
    chance = np.sqrt(0.05 / 0.25 / 100)
    assert lines_with(axis, [chance, chance]) and lines_with(axis, [0, 1], [chance / 0.25] * 2)
    assert axis.get_title() == r"random start, adam, $d = 100$, $\alpha = 2$"


def test_iterations_are_points_and_their_prediction_lines():
    axis = dp.plot.iterations(made_up.passing()).axes[0]
    expected = {
        r"$q/\sigma^2$": ("uninformed", (0.1 + 0.01 * np.arange(3)) / 0.25),
        r"$|m|/\sigma^2$": ("positional", [0, 0, 0]),
        r"$|\theta|/\sigma^2$": ("semantic", 0.02 * np.arange(3) / 0.25),
    }
    for (label, (name, values)), points in zip(expected.items(), axis.containers, strict=True):
        line = labelled_lines(axis)[label]
        np.testing.assert_array_equal(line.get_xdata(), [0, 1, 2])
        np.testing.assert_allclose(line.get_ydata(), values)
        np.testing.assert_allclose(points.lines[0].get_ydata(), values)
        assert color(line) == color(points.lines[0]) == COLORS[name].lower()
    assert axis.get_title() == r"semantic start, $d = 100$, $\alpha = 2$, 1 runs"


def test_basins_are_shares_of_runs_in_percent():
    runs = made_up.basins()
    figure = dp.plot.basins(runs)
    share = basin_shares(runs)["share"]
    kinds = ["semantic", "positional", "uninformed"]
    assert sorted(axis.get_title() for axis in figure.axes[:3]) == sorted(
        f"{kind} (% of runs)" for kind in kinds
    )
    order = [axis.get_title().split()[0] for axis in figure.axes[:3]]
    for number, axis in enumerate(figure.axes):
        optimizer, kind = runs["optimizer"].values[number // 3], order[number % 3]
        values = share.sel(optimizer=optimizer, mechanism=kind).transpose("scale", "alpha").values
        np.testing.assert_allclose(axis.images[0].get_array(), values)
        assert texts(axis) == [f"{100 * value:.0f}" for value in values.ravel()]
        assert to_hex(axis.images[0].cmap(1.0)) == COLORS[kind].lower()
    ticks = figure.axes[0].get_yticklabels()
    assert [tick.get_text() for tick in ticks] == ["0.01", "0.1", "1"]
    assert [figure.axes[k].get_ylabel().split("\n")[0] for k in (0, 3)] == [
        "gradient descent",
        "lion",
    ]


def test_outcomes_are_shares_with_errors():
    runs = made_up.basins().isel(optimizer=[0])
    figure = dp.plot.outcomes({"$d = 100$": runs, "$d = 300$": runs})
    shares = basin_shares(runs.isel(optimizer=0))
    axes = np.reshape(figure.axes, (3, 3))
    for row, kind in zip(axes, ("semantic", "positional", "uninformed"), strict=True):
        assert row[0].get_ylabel() == f"share of {kind} ends"
        for axis, scale in zip(row, (0.01, 0.1, 1.0), strict=True):
            expected = shares.sel(mechanism=kind, scale=scale)
            for number, container in enumerate(axis.containers):
                line = container.lines[0]
                alphas = runs["alpha"] + 0.04 * number
                np.testing.assert_allclose(xy(line), [alphas, expected["share"]])
                np.testing.assert_allclose(bars(container), expected["stderr"])
    assert [axis.get_title() for axis in axes[0]] == [
        f"initial scale $s = {scale}$" for scale in ("0.01", "0.1", "1")
    ]
    assert legend_texts(axes[0, 0]) == ["$d = 100$", "$d = 300$"]


@pytest.fixture
def descent():
    return made_up.descent()


def test_descent_is_dotted_beyond_the_trusted_steps(descent):
    figure = dp.plot.dynamics(descent)
    expected = (
        (0, "train_loss", 1),
        (1, "test_error", 1),
        (2, "theta", 0.25),
        (2, "m", 0.25),
        (2, "q", 0.25),
    )
    trusted = descent["trusted"]
    for number, name, scale in expected:
        axis, values = figure.axes[number], descent[name] / scale
        (solid,) = lines_with(axis, values.where(trusted), descent["step"])
        (dotted,) = lines_with(axis, values.where(~trusted), descent["step"])
        assert (solid.get_linestyle(), dotted.get_linestyle()) == ("-", ":")
        assert color(solid) == color(dotted)
    labels = {
        r"$\theta/\sigma^2$": "semantic",
        r"$m/\sigma^2$": "positional",
        r"$q/\sigma^2$": "mixed",
    }
    lines = labelled_lines(figure.axes[2])
    assert {label: color(lines[label]) for label in labels} == {
        label: COLORS[name].lower() for label, name in labels.items()
    }
    assert legend_texts(figure.axes[0]) == [r"gradient descent, $d \to \infty$"]


def test_the_band_is_two_standard_errors(descent):
    axis = dp.plot.dynamics(descent).axes[0]
    vertices = axis.collections[0].get_paths()[0].vertices
    high = descent["train_loss"] + 2 * descent["train_loss_stderr"]
    low = descent["train_loss"] - 2 * descent["train_loss_stderr"]
    assert vertices[:, 1].max() == pytest.approx(float(high.max()))
    assert vertices[:, 1].min() == pytest.approx(float(low.min()))


def test_trained_students_are_open_points_on_the_descent(descent):
    training = xr.concat([descent, 1.1 * descent], "seed").assign_attrs(d=40)
    axis = dp.plot.dynamics(descent, training=training).axes[0]
    (container,) = axis.containers
    steps, means = xy(container.lines[0])
    rows = training["train_loss"].sel(step=steps)
    np.testing.assert_allclose(means, rows.mean("seed"))
    np.testing.assert_allclose(bars(container), rows.std("seed", ddof=1) / np.sqrt(2))
    assert is_open(container.lines[0]) and steps[0] == 0 and steps[-1] == 20
    assert legend_texts(axis)[-1] == "training, $d = 40$"


def test_flow_has_fixed_points_by_kind_and_overlaps_by_time():
    field, time = made_up.field(), made_up.along_time()
    figure = dp.plot.flow({2.0: field}, time, time)
    axis, last = figure.axes
    expected = [
        (0.3, 0.0, "positional", False),
        (0.0, 0.2, "semantic", False),
        (0.1, 0.1, "mixed", True),
    ]
    for m, theta, kind, hollow in expected:
        (point,) = [line for line in lines_with(axis, [theta], [m]) if line.get_markersize() == 10]
        assert color(point) == COLORS[kind].lower() and is_open(point) is hollow
    assert legend_texts(axis) == ["equal loss", "minimum", "saddle or maximum"]
    assert r"$\alpha$ = 2" in axis.get_title()
    colors = {"m": "positional", "theta": "semantic", "q": "mixed"}
    for (name, kind), container in zip(colors.items(), last.containers, strict=True):
        (line,) = [
            line
            for line in lines_with(last, time[name], time["tau"])
            if line.get_linestyle() == "-"
        ]
        np.testing.assert_allclose(xy(container.lines[0]), [time["tau"], time[name]])
        np.testing.assert_allclose(bars(container), time[f"{name}_stderr"])
        assert color(line) == COLORS[kind].lower() and is_open(container.lines[0])


def test_attention_has_a_map_of_each_matrix():
    matrices = made_up.attention()
    figure = dp.plot.attention(matrices)
    for axis, who in zip(figure.axes, ("teacher", "student"), strict=False):
        weights = matrices.sel(who=who).values
        np.testing.assert_allclose(axis.images[0].get_array(), weights)
        assert axis.images[0].get_clim() == (0, 0.9)
        assert axis.get_title() == who
        assert texts(axis) == [f"{value:.2f}" for value in weights.ravel()]
    long = xr.DataArray(np.eye(7)[None], dims=("who", "token", "on"), coords={"who": ["teacher"]})
    assert texts(dp.plot.attention(long).axes[0]) == []
