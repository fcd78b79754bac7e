"""What all figures have in common; the other files of this folder test their content."""

import inspect
import os
import subprocess
import sys

import pytest
from matplotlib.colors import to_rgb

import dotphase as dp
import made_up
from dotphase.figures.parts.maps import gain_panel
from dotphase.figures.parts.style import ink_color, page_color, theme


def example_data():
    """Made-up arguments of each figure."""
    curve, diagram = made_up.curve(), made_up.diagram()
    grid = made_up.runs(made_up.OMEGA)
    gain = gain_panel(diagram, grid)
    basins = made_up.basins()
    return {
        "attention": (made_up.attention(),),
        "basins": (basins,),
        "bayes": (curve, made_up.bayes()),
        "compare": (made_up.compared(),),
        "complexity": (made_up.complexity(),),
        "curve": (curve,),
        "diagram": (diagram,),
        "dynamics": (made_up.descent(),),
        "flow": ({2.0: made_up.field()}, made_up.along_time(), made_up.along_time()),
        "heads": (made_up.heads(),),
        "histogram_attention": ({"semantic": dp.histogram.shipped("semantic")},),
        "histogram_curves": (made_up.histogram(),),
        "histogram_distances": (made_up.histogram(),),
        "histogram_emergence": (made_up.emergence(),),
        "histogram_landscape": (made_up.landscape(),),
        "iterations": (made_up.passing(),),
        "landscape": (made_up.loss_surface(),),
        "mechanisms": (made_up.training(),),
        "map_columns": ([gain], diagram, grid),
        "model_error": (made_up.model_errors(),),
        "online": (made_up.one_pass(),),
        "outcomes": ({"$d = 100$": basins.isel(optimizer=[0])},),
        "phase_maps": (diagram, grid),
        "wide": made_up.wide(),
        "trained_diagram": (made_up.trained_means(), made_up.critical("omega", made_up.OMEGA)),
    }


@pytest.fixture(scope="module")
def arguments():
    return example_data()


def test_every_figure_has_data(arguments):
    assert sorted(arguments) == dp.plot.__all__


@pytest.mark.parametrize("name", dp.plot.__all__)
def test_figure_writes_its_file_and_labels_its_axes(name, arguments, tmp_path):
    function = getattr(dp.plot, name)
    assert function.__module__ == f"dotphase.figures.{name}" and function.__name__ == name
    assert inspect.signature(function).parameters["path"].default is None
    figure = function(*arguments[name], path=tmp_path / "figure.svg")
    assert (tmp_path / "figure.svg").read_text().rstrip().endswith("</svg>")
    panels = [axis for axis in figure.axes if axis.get_label() != "<colorbar>"]
    for axis in panels:
        assert axis.has_data() or axis.images or axis.collections
        legend = axis.get_legend()
        assert legend is None or legend.get_texts()
    assert any(axis.get_xlabel() or axis.get_xticklabels() for axis in panels)
    assert any(axis.get_ylabel() for axis in panels)


@pytest.mark.parametrize("name", dp.plot.__all__)
def test_dark_figures_have_dark_pages_and_bright_text(name, arguments):
    with theme("dark"):
        figure = getattr(dp.plot, name)(*arguments[name])
        page, ink = to_rgb(page_color()), to_rgb(ink_color())
    assert to_rgb(figure.get_facecolor()) == page and sum(page) < 0.5
    assert all(to_rgb(axis.xaxis.label.get_color()) == ink for axis in figure.axes)
    bright = [line for axis in figure.axes for line in axis.lines if line.get_color() == "#222222"]
    assert not bright or name in {"map_columns", "phase_maps", "trained_diagram", "diagram"}


def test_figure_draws_into_the_axes_of_the_caller(tmp_path):
    from matplotlib.figure import Figure

    mine = Figure()
    axis, other = mine.subplots(1, 2)
    assert dp.plot.mechanisms(made_up.training(), tmp_path / "mine.png", ax=axis) is mine
    assert axis.get_xlabel() == r"$|m|/\sigma^2$" and not other.has_data()
    assert (tmp_path / "mine.png").exists()
    with pytest.raises(dp.InvalidInput, match=r"^ax = '2 axes': must be a single"):
        dp.plot.mechanisms(made_up.training(), ax=[axis, other])


def test_unknown_figure_lists_the_known_ones():
    with pytest.raises(AttributeError, match=r"no figure 'cruve'; known are .*curve"):
        _ = dp.plot.cruve


def test_the_backend_of_a_notebook_that_is_not_installed_here(tmp_path):
    code = "import dotphase.figures, matplotlib, os; print(os.environ['MPLBACKEND'])"
    name = "module://not_installed_here.backend_inline"
    for backend in (name, "module://matplotlib_inline.backend_inline"):
        environment = os.environ | {"MPLBACKEND": backend}
        result = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True
        )
        assert result.stdout.strip() == backend, result.stderr
