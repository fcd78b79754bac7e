import matplotlib.image
import numpy as np
import pytest

import dotphase as dp
import made_up


@pytest.fixture
def dataset():
    return made_up.curve()


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_figure_is_written_and_reproducible(dataset, tmp_path, ending):
    first, second = tmp_path / f"a.{ending}", tmp_path / f"b.{ending}"
    dp.plot.curve(dataset, first)
    dp.plot.curve(dataset, second)
    assert first.stat().st_size > 5000
    if ending != "pdf":
        assert first.read_bytes() == second.read_bytes()


def test_branches_crossing_and_baseline_are_drawn(dataset, tmp_path):
    figure = dp.plot.curve(dataset)
    loss, error, overlap = figure.axes
    labels = [text.get_text() for axis in figure.axes for text in axis.get_legend().get_texts()]
    assert {"semantic", "positional", "theory not trusted"} <= set(labels)
    assert any("1.240" in label for label in labels)
    semantic = loss.get_lines()[0].get_ydata()
    assert np.isnan(semantic[:2]).all() and np.isfinite(semantic[2:]).all()  # trusted from 1.5 on
    assert any(np.allclose(line.get_ydata(), 0.00197) for line in error.get_lines())
    assert overlap.get_lines()


def test_pixels_show_both_colors(dataset, tmp_path):
    path = tmp_path / "a.png"
    dp.plot.curve(dataset, path)
    pixels = (matplotlib.image.imread(path)[..., :3] * 255).round().astype(int).reshape(-1, 3)
    for color in [(0, 0x72, 0xB2), (0xD5, 0x5E, 0)]:
        assert np.sum(np.all(pixels == color, axis=1)) > 200


def test_figures_are_not_left_open():
    from matplotlib import pyplot

    from dotphase.figures.parts.style import house_style

    mine = pyplot.figure()
    with house_style() as plain:
        plain.subplots()
    assert pyplot.get_fignums() == [mine.number]
    pyplot.close(mine)
