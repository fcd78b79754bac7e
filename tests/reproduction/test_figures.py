"""Figures of the reproduction draw their data."""

from importlib import import_module
from pkgutil import iter_modules

import numpy as np
import pytest
import xarray as xr

import made_up
from reproduction import figures
from reproduction.figures.difference_maps import SHOWN

NAMES = [info.name for info in iter_modules(figures.__path__)]


def difference_rows():
    """Normalized differences of one table over alpha and omega, for each quantity."""
    quantity, alpha, omega = np.meshgrid(SHOWN, [1.0, 2.0], [0.1, 0.2], indexing="ij")
    size = alpha.size
    columns = {
        "difference": np.linspace(-1, 1, size),
        "stands_in": np.zeros(size, int),
        "alpha": alpha.ravel(),
        "omega": omega.ravel(),
        "table": ["maps"] * size,
        "start": ["semantic"] * size,
        "quantity": quantity.ravel(),
    }
    return xr.Dataset({name: ("row", values) for name, values in columns.items()})


def learner_errors():
    """Test errors of one learner at one alpha."""
    dims = ("learner", "alpha", "seed")
    errors = xr.Dataset({"test_error": (dims, [[[0.002, 0.003]]]), "linear_limit": 0.002})
    errors = errors.assign_coords(learner=["perceptron on tokens"], alpha=[2.0])
    return errors.assign_attrs(d=40)


def descent_path():
    """Training loss and theta over ten steps."""
    step = np.arange(11)
    values = {"train_loss": ("step", 0.01 / (1 + step)), "theta": ("step", 0.02 * step)}
    return xr.Dataset(values, {"step": step}, {"sigma": [0.5, 0.5]})


def arguments():
    """Arguments of each figure."""
    curve, runs, diagram = made_up.curve(), made_up.runs(), made_up.diagram()
    point, concentration = curve.isel(alpha=3), made_up.concentration()
    critical = {"alpha_c": 1.2, "alpha_l": float("nan"), "linear_test_error": 0.00197}
    tokens = (curve, runs.isel(omega=0), runs.isel(omega=0))
    return {
        "baselines": (learner_errors(),),
        "concentration": (point, concentration),
        "descent_limits": ({"": [("two tokens", curve, curve, runs)]},),
        "difference_maps": (difference_rows(),),
        "differences": (difference_rows(),),
        "family": ([("two", curve, runs)],),
        "gamp": ({"semantic": made_up.passing_dataset()},),
        "lengths": ([("two", curve, runs)], made_up.critical("length", [2, 3])),
        "optimizers": ({"gradient descent": (descent_path(), None)},),
        "overlap_slices": ({"omega": [(0.3, curve, runs)]},),
        "quadrature": (made_up.sobol(), made_up.rules(), 1.241),
        "ridge_regression": (made_up.ridge(),),
        "scatter_by_dimension": (point, concentration.assign(test_error=concentration["m"])),
        "scatter_by_start": (point, made_up.starts()),
        "slices": ({"omega": [(0.3, curve, runs)]},),
        "structured_tokens": (
            {0.0: (curve, runs)},
            made_up.critical("exponent", [0.0, 1.0]),
            {"words": tokens},
        ),
        "transition": (curve, critical, runs),
        "winners": ([("one", diagram)],),
    }


@pytest.mark.parametrize("name", NAMES)
def test_figure_draws_its_data(name, tmp_path):
    function = getattr(import_module(f"reproduction.figures.{name}"), f"plot_{name}")
    figure = function(*arguments()[name], path=tmp_path / "figure.svg")
    assert (tmp_path / "figure.svg").stat().st_size > 5000
    assert all(
        axis.has_data() or axis.images or axis.collections
        for axis in figure.axes
        if axis.get_label() != "<colorbar>"
    )
