"""Maps over alpha and omega: `diagram`, `map_columns`, `phase_maps`, `trained_diagram`."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from matplotlib.colors import to_hex

import dotphase as dp
import made_up
from dotphase.figures.parts.maps import SINGLE_BRANCH_COLORS, gain_panel, untrusted_cells
from dotphase.figures.parts.style import empty_color
from figure_content import bars, is_open, labelled_lines, legend_texts, map_values, texts, xy

NAN = np.nan


@pytest.fixture
def dataset():
    return made_up.diagram()


def test_upper_maps_are_loss_difference_and_gain(dataset):
    figure = dp.plot.diagram(dataset)
    for axis, name in zip(figure.axes[:2], ("loss_difference", "test_gain"), strict=True):
        (cells,) = map_values(axis)
        expected = 1e3 * dataset[name].transpose("omega", "alpha")
        np.testing.assert_allclose(cells, expected)
        low, high = axis.collections[0].get_clim()
        assert high == -low == pytest.approx(float(np.abs(expected).max()))
        assert to_hex(axis.get_facecolor()) == empty_color().lower()
    assert legend_texts(figure.axes[0])[-1] == "a branch is no minimum (see below)"


def test_critical_lines_are_on_both_maps(dataset):
    for axis in dp.plot.diagram(dataset).axes[:2]:
        lines = labelled_lines(axis)
        for label, name, style in (
            (r"$\alpha_c$", "alpha_c", "-"),
            (r"$\alpha_l$", "alpha_l", "--"),
        ):
            np.testing.assert_array_equal(lines[label].get_xdata(), dataset[name])
            np.testing.assert_array_equal(lines[label].get_ydata(), made_up.OMEGA)
            assert lines[label].get_linestyle() == style
    bare = dp.plot.diagram(dataset.assign(alpha_l=dataset["alpha_l"] * NAN))
    assert r"$\alpha_l$" not in labelled_lines(bare.axes[0])


def test_lower_maps_are_model_error_and_kinds(dataset):
    figure = dp.plot.diagram(dataset)
    for axis, name in zip(figure.axes[2:4], dataset["branch"].values, strict=True):
        branch = dataset.sel(branch=name)
        kind = branch["kind"].transpose("omega", "alpha").values
        (cells,) = map_values(axis)
        np.testing.assert_allclose(cells, np.where(np.isin(kind, ["saddle", "missing"]), NAN, 20.0))
        alpha, omega = np.meshgrid(made_up.ALPHA, made_up.OMEGA)
        for line, word in zip(axis.lines, ("saddle", "marginal", "unknown"), strict=False):
            np.testing.assert_array_equal(line.get_xdata(), alpha[kind == word])
            np.testing.assert_array_equal(line.get_ydata(), omega[kind == word])
        assert axis.get_title() == f"{name} branch"
    assert legend_texts(figure) == [
        "saddle", "minimum or saddle: undetermined", "kind not measured",
        "missing: no such fixed point",
    ]  # fmt: skip


def test_ends_of_descent_fill_cells_without_a_minimum(dataset):
    reached = xr.full_like(dataset["loss_difference"], 2e-3)
    figure = dp.plot.diagram(dataset.assign(reached_difference=reached))
    assert np.isfinite(map_values(figure.axes[0])[0]).all()
    dots = labelled_lines(figure.axes[0])[r"one branch missing: gradient descent, $d \to \infty$"]
    assert (dots.get_xdata(), dots.get_ydata()) == ([0.5], [0.3])


def test_untrusted_cells_are_hatched_where_they_are(dataset):
    runs = made_up.runs(made_up.OMEGA)
    figure = dp.plot.map_columns([gain_panel(dataset, runs)], dataset, runs)
    (hatched,) = [
        part
        for part in figure.axes[0].collections
        if part.get_hatch() == "////" and part.get_paths()
    ][:1]
    centers = {tuple(np.round(path.vertices[:4].mean(axis=0), 6)) for path in hatched.get_paths()}
    rows, columns = np.nonzero(untrusted_cells(dataset, "omega"))
    expected = {(made_up.ALPHA[j], made_up.OMEGA[i]) for i, j in zip(rows, columns, strict=True)}
    assert {(round(x, 2), round(y, 2)) for x, y in centers} == {
        (round(float(x), 2), round(float(y), 2)) for x, y in expected
    }
    assert "not trusted" in legend_texts(figure)
    trusted = dataset.assign(winner_trusted=xr.ones_like(dataset["winner_trusted"]))
    assert "not trusted" not in legend_texts(
        dp.plot.map_columns([gain_panel(trusted, runs)], trusted, runs)
    )


def test_theory_is_above_training_on_one_scale(dataset):
    runs = made_up.runs(made_up.OMEGA)
    figure = dp.plot.phase_maps(dataset, runs)
    upper, lower = figure.axes[:2], figure.axes[2:4]
    loss = runs["train_loss"].mean("seed")
    difference = 1e3 * (loss.sel(start="semantic") - loss.sel(start="positional"))
    np.testing.assert_allclose(map_values(lower[0])[0], difference.transpose("omega", "alpha"))
    np.testing.assert_allclose(
        map_values(upper[1])[0], 1e3 * dataset["test_gain"].transpose("omega", "alpha")
    )
    for top, bottom in zip(upper, lower, strict=True):
        assert top.collections[0].get_clim() == bottom.collections[0].get_clim()
    assert upper[0].get_ylabel() == r"$\omega$   (theory)"
    assert lower[0].get_ylabel() == r"$\omega$   (training, $d = 200$)"
    single = [mesh for mesh in upper[0].collections if type(mesh).__name__ == "QuadMesh"][1]
    assert to_hex(single.cmap(0.5)) == SINGLE_BRANCH_COLORS["positional"].lower()
    assert "positional branch only" in legend_texts(figure)


def test_gain_of_training_is_that_of_the_lower_loss(dataset):
    runs = made_up.runs(made_up.OMEGA)
    panel = gain_panel(dataset, runs)
    cell = runs.sel(alpha=2.0, omega=0.1)
    start = cell["train_loss"].idxmin("start")
    error = cell["test_error"].sel(start=start)
    expected = 1e3 * (cell["linear_test_error"] - error).mean("seed")
    assert float(panel.trained.sel(alpha=2.0, omega=0.1)) == pytest.approx(float(expected))


def test_trained_alpha_c_is_compared_with_theory():
    means, theory = made_up.trained_means(), made_up.critical("omega", made_up.OMEGA)
    figure = dp.plot.trained_diagram(means, theory)
    map_axis, axis = figure.axes[:2]
    np.testing.assert_allclose(
        map_values(map_axis)[0], 1e3 * means["loss_difference"].transpose("omega", "alpha")
    )
    line = labelled_lines(map_axis)[r"$\alpha_c$, replica symmetric"]
    np.testing.assert_array_equal(line.get_xdata(), theory["alpha_c"])
    filled, hollow = (container.lines[0] for container in axis.containers)
    np.testing.assert_allclose(xy(filled)[0], [100 * (0.62 / 1.2 - 1), NAN])
    np.testing.assert_allclose(xy(hollow)[0], [100 * (0.93 / 1.0 - 1)])
    assert not is_open(filled) and is_open(hollow)
    ratio, errors = 0.93, np.hypot(0.02 / 0.93, 0.02)
    np.testing.assert_allclose(bars(axis.containers[1]), [100 * ratio * errors])
    assert legend_texts(axis) == ["theory not trusted"]
    assert map_axis.get_ylabel() == r"$\omega$" and texts(axis) == []
