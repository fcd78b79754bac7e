"""Figures draw their data; each file holds one function of the same name."""

import inspect
from pathlib import Path

import pytest

import dotphase as dp
import made_up
from dotphase import figures
from dotphase.figures.parts.maps import gain_panel

FOLDER = Path(figures.__file__).parent


def example_data():
    """Made-up arguments of each figure."""
    curve, diagram = made_up.curve(), made_up.diagram()
    grid = made_up.runs(made_up.OMEGA)
    gain = gain_panel(diagram, grid)
    return {
        "basins": (made_up.basins(),),
        "bayes": (curve, made_up.bayes()),
        "compare": (made_up.compared(),),
        "curve": (curve,),
        "diagram": (diagram,),
        "flow": ({2.0: made_up.field()}, made_up.along_time(), made_up.along_time()),
        "histogram_attention": ({"semantic": dp.histogram.shipped("semantic")},),
        "histogram_curves": (made_up.histogram(),),
        "histogram_distances": (made_up.histogram(),),
        "histogram_emergence": (made_up.emergence(),),
        "histogram_landscape": (made_up.landscape(),),
        "iterations": (made_up.passing(),),
        "mechanisms": (made_up.training(),),
        "map_columns": ([gain], diagram, grid),
        "phase_maps": (diagram, grid),
        "trained_diagram": (made_up.trained_means(), made_up.critical("omega", made_up.OMEGA)),
    }


@pytest.fixture(scope="module")
def arguments():
    return example_data()


@pytest.mark.parametrize("name", dp.plot.__all__)
def test_figure_writes_its_file(name, arguments, tmp_path):
    function = getattr(dp.plot, name)
    assert function.__module__ == f"dotphase.figures.{name}" and function.__name__ == name
    assert inspect.signature(function).parameters["path"].default is None
    if name not in arguments:  # the example of its docstring draws the figure
        assert f"dp.plot.{name}(" in function.__doc__
        return
    figure = function(*arguments[name], path=tmp_path / "figure.svg")
    assert (tmp_path / "figure.svg").stat().st_size > 5000
    assert all(
        axis.has_data() or axis.images or axis.collections
        for axis in figure.axes
        if axis.get_label() != "<colorbar>"
    )


def test_figure_draws_into_the_axes_of_the_caller(tmp_path):
    from matplotlib.figure import Figure

    mine = Figure()
    axis, other = mine.subplots(1, 2)
    assert dp.plot.mechanisms(made_up.training(), tmp_path / "mine.png", ax=axis) is mine
    assert axis.get_xlabel() == "$|m|$" and not other.has_data()
    assert (tmp_path / "mine.png").exists()
    with pytest.raises(dp.InvalidInput, match=r"^ax = '2 axes': must be a single"):
        dp.plot.mechanisms(made_up.training(), ax=[axis, other])


def test_unknown_figure_lists_the_known_ones():
    with pytest.raises(AttributeError, match=r"no figure 'cruve'; known are .*curve"):
        _ = dp.plot.cruve
