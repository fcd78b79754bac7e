"""Every figure draws what it is given; one file, one function of the same name."""

import inspect
from pathlib import Path

import pytest

import dotphase as dp
import made_up
from dotphase import figures
from dotphase.figures.parts.maps import gain_panel

FOLDER = Path(figures.__file__).parent


def drawn():
    """What each figure is drawn from, in the tests."""
    curve, runs, diagram = made_up.curve(), made_up.runs(), made_up.diagram()
    grid = made_up.runs(made_up.OMEGA)
    known = {"alpha_c": 1.2, "alpha_l": float("nan"), "linear_test_error": 0.00197}
    gain = gain_panel(diagram, grid)
    tokens = (curve, runs.isel(omega=0), runs.isel(omega=0))
    return {
        "basins": (made_up.basins(),),
        "bayes": (curve, made_up.bayes()),
        "compare": (made_up.compared(),),
        "concentration": (curve.isel(alpha=3), made_up.concentration()),
        "curve": (curve,),
        "diagram": (diagram,),
        "family": ([("two", curve, runs)], made_up.critical("length", [2, 3])),
        "flow": ({2.0: made_up.field()}, made_up.along_time(), made_up.along_time()),
        "gamp": ({"semantic": made_up.passing_dataset()},),
        "histogram_attention": ({"semantic": dp.histogram.shipped("semantic")},),
        "histogram_curves": (made_up.histogram(),),
        "histogram_distances": (made_up.histogram(),),
        "histogram_emergence": (made_up.emergence(),),
        "histogram_landscape": (made_up.landscape(),),
        "iterations": (made_up.passing(),),
        "ridge_regression": (made_up.ridge(),),
        "mechanisms": (made_up.training(),),
        "map_columns": ([gain], diagram, grid),
        "phase_maps": (diagram, grid),
        "quadrature": (made_up.sobol(), made_up.rules(), 1.241),
        "slices": ({"omega": [(0.3, curve, runs)]},),
        "scatter_by_start": (curve.isel(alpha=3), made_up.starts()),
        "structured_tokens": (
            {0.0: (curve, runs)},
            made_up.critical("exponent", [0.0, 1.0]),
            {"words": tokens},
        ),
        "trained_diagram": (made_up.trained_means(), made_up.critical("omega", made_up.OMEGA)),
        "transition": (curve, known, runs),
        "winners": ([("one", diagram)],),
    }


@pytest.fixture(scope="module")
def arguments():
    return drawn()


@pytest.mark.parametrize("name", dp.plot.__all__)
def test_a_figure_is_one_function_that_writes_its_file(name, arguments, tmp_path):
    function = getattr(dp.plot, name)
    assert function.__module__ == f"dotphase.figures.{name}" and function.__name__ == name
    assert inspect.signature(function).parameters["path"].default is None
    if name not in arguments:  # then the example of its docstring must draw it
        assert f"dp.plot.{name}(" in function.__doc__
        return
    figure = function(*arguments[name], path=tmp_path / "figure.svg")
    assert (tmp_path / "figure.svg").stat().st_size > 5000
    assert all(
        axis.has_data() or axis.images or axis.collections
        for axis in figure.axes
        if axis.get_label() != "<colorbar>"
    )


def test_a_figure_goes_into_axes_of_the_users_own(tmp_path):
    from matplotlib.figure import Figure

    mine = Figure()
    axis, other = mine.subplots(1, 2)
    assert dp.plot.mechanisms(made_up.training(), tmp_path / "mine.png", ax=axis) is mine
    assert axis.get_xlabel() == "$|m|$" and not other.has_data()
    assert (tmp_path / "mine.png").exists()
    with pytest.raises(dp.InvalidInput, match=r"^ax = '2 axes': must be a single"):
        dp.plot.mechanisms(made_up.training(), ax=[axis, other])


def test_unknown_figures_are_named():
    with pytest.raises(AttributeError, match=r"no figure 'cruve'; known are .*curve"):
        _ = dp.plot.cruve
