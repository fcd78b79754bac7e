"""The figure of `dotphase.curve`."""

import matplotlib.image
import numpy as np
import pytest
from matplotlib import pyplot

import dotphase as dp
import made_up
from dotphase.figures.parts.style import COLORS, house_style
from figure_content import color, is_open, labelled_lines, legend_texts, lines_with, texts

SCALE = 0.25  # sigma^2


@pytest.fixture
def dataset():
    return made_up.curve()


@pytest.mark.parametrize("name", ["semantic", "positional"])
def test_every_panel_has_the_values_of_each_branch(dataset, name):
    branch = dataset.sel(branch=name)
    trusted = branch.where(branch["trusted"].astype(bool) & branch["on_branch"].astype(bool))
    overlap = "theta" if name == "semantic" else "m"
    expected = (trusted["train_loss"], trusted["test_error"], trusted[overlap] / SCALE)
    for axis, values in zip(dp.plot.curve(dataset).axes, expected, strict=True):
        (line,) = [
            line
            for line in lines_with(axis, values, made_up.ALPHA)
            if line.get_linewidth() > 1 and line.get_marker() != "None"
        ]
        assert color(line) == COLORS[name].lower() and not is_open(line)
        assert line.get_marker() == {"semantic": "o", "positional": "s"}[name]


def test_untrusted_points_are_open(dataset):
    loss, error, overlap = dp.plot.curve(dataset).axes
    for axis, part, scale in (
        (loss, "train_loss", 1),
        (error, "test_error", 1),
        (overlap, "theta", SCALE),
    ):
        value = float(dataset[part].sel(branch="semantic", alpha=1.0)) / scale
        (line,) = [
            line for line in lines_with(axis, [np.nan, value, np.nan, np.nan]) if is_open(line)
        ]
        assert color(line) == COLORS["semantic"].lower()
    assert "theory not trusted" in legend_texts(loss)
    trusted = dataset.assign(trusted=dataset["on_branch"])
    assert "theory not trusted" not in legend_texts(dp.plot.curve(trusted).axes[0])


def test_labels_and_legends(dataset):
    figure = dp.plot.curve(dataset)
    loss, error, overlap = figure.axes
    alpha_c = r"$\alpha_c = 1.240 \pm 0.010$"
    assert legend_texts(loss) == ["semantic", "positional", alpha_c, "theory not trusted"]
    assert legend_texts(error) == ["linear positional layer"]
    assert legend_texts(overlap) == [r"$\theta/\sigma^2$, semantic", r"$m/\sigma^2$, positional"]
    assert loss.get_ylabel() == r"training loss $\epsilon_t$"
    assert error.get_ylabel() == r"test error $\epsilon_g$"
    assert {axis.get_xlabel() for axis in figure.axes} == {r"sample complexity $\alpha = n/d$"}
    assert figure.get_suptitle() == r"replica-symmetric minima, $d \to \infty$"


def test_alpha_c_and_the_linear_layer_are_lines(dataset):
    loss, error, overlap = dp.plot.curve(dataset).axes
    for axis in (loss, error):
        (line,) = lines_with(axis, [0, 1], [1.24, 1.24])
        assert line.get_linestyle() == ":"
    assert not lines_with(overlap, [0, 1], [1.24, 1.24])
    assert color(labelled_lines(error)["linear positional layer"]) == COLORS["linear"].lower()
    assert lines_with(error, [0.00197, 0.00197])
    bare = dp.plot.curve(dataset.assign(alpha_c=np.nan, linear_test_error=np.nan))
    assert legend_texts(bare.axes[0]) == ["semantic", "positional", "theory not trusted"]
    assert bare.axes[1].get_legend() is None


def test_saddles_ends_of_descent_and_missing_branches(dataset):
    kind = np.full((2, 4), "minimum")
    kind[1, 3] = "saddle"
    saddle = dp.plot.curve(dataset.assign(kind=(made_up.DIMS, kind)))
    assert "saddle: training leaves it" in legend_texts(saddle.axes[0])
    descent = dp.plot.curve(dataset.assign_attrs(theory="dynamics"))
    assert descent.get_suptitle() == r"ends of gradient descent, $d \to \infty$"
    nothing = dp.plot.curve(dataset.assign(on_branch=dataset["on_branch"] & False))
    assert texts(nothing.axes[0]) == ["no branch exists"]


def test_order_of_alpha_does_not_matter(dataset):
    shuffled = dp.plot.curve(dataset.isel(alpha=[2, 0, 3, 1]))
    for axis, other in zip(shuffled.axes, dp.plot.curve(dataset).axes, strict=True):
        for line, expected in zip(axis.lines, other.lines, strict=True):
            np.testing.assert_array_equal(line.get_xydata(), expected.get_xydata())


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_files_are_reproducible(dataset, tmp_path, ending):
    first, second = tmp_path / f"a.{ending}", tmp_path / f"b.{ending}"
    dp.plot.curve(dataset, first)
    dp.plot.curve(dataset, second)
    starts = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    assert first.read_bytes().startswith(starts[ending])
    if ending != "pdf":
        assert first.read_bytes() == second.read_bytes()


def test_pixels_have_both_colors(dataset, tmp_path):
    path = tmp_path / "a.png"
    dp.plot.curve(dataset, path)
    pixels = (matplotlib.image.imread(path)[..., :3] * 255).round().astype(int).reshape(-1, 3)
    for rgb in [(0, 0x72, 0xB2), (0xD5, 0x5E, 0)]:
        assert np.sum(np.all(pixels == rgb, axis=1)) > 200


def test_figures_are_closed_in_pyplot():
    mine = pyplot.figure()
    with house_style() as plain:
        plain.subplots()
    assert pyplot.get_fignums() == [mine.number]
    pyplot.close(mine)
