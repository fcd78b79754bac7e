from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr

import dotphase as dp
from dotphase.experiments.dynamics import filled_diagram
from dotphase.storage.files import write_dataset

ALPHAS = [0.5, 1.1, 1.4, 1.7]
OMEGAS = [0.25, 0.3, 0.9]


@pytest.fixture(scope="module")
def dataset():
    return dp.diagram(lambda omega: dp.positional_semantic(omega), ALPHAS, OMEGAS, log2_points=12)


def test_layout(dataset):
    assert dict(dataset.sizes) == {"branch": 2, "omega": 3, "alpha": 4}
    assert dataset["loss_difference"].dims == ("omega", "alpha")
    assert dataset["winner"].dtype.kind in "UOT"


def test_winner_has_the_lower_loss_and_the_lines_agree_with_the_map(dataset):
    gap = dataset["loss_difference"]
    semantic = dataset["winner"] == "semantic"
    assert bool((gap.where(semantic, -1.0) < 0).all())
    assert bool((gap.where(~semantic, 1.0).fillna(1.0) >= 0).all())
    for omega in (0.25, 0.3):
        line = float(dataset["alpha_c"].sel(omega=omega))
        below = gap.sel(omega=omega).where(gap["alpha"] < line, drop=True)
        above = gap.sel(omega=omega).where(gap["alpha"] > line, drop=True)
        assert bool((below.dropna("alpha") > 0).all()) and bool((above < 0).all())
    assert np.isnan(dataset["alpha_c"].sel(omega=0.9))


def test_lines_are_near_the_exact_ones(dataset):
    """Coarse grid, few points: within the error that they say of themselves."""
    at = dataset.sel(omega=0.3)
    for name, exact in (("alpha_c", 1.2515), ("alpha_l", 1.4925)):
        assert 0.002 < float(at[f"{name}_stderr"]) < 0.1
        assert abs(float(at[name]) - exact) < 4 * float(at[f"{name}_stderr"])
        assert at[f"{name}_trusted"].dtype == bool
    nowhere = dataset.sel(omega=0.9)
    assert np.isnan(nowhere["alpha_c_stderr"]) and not bool(nowhere["alpha_c_trusted"])


def test_axes_have_names(dataset):
    assert dataset["alpha"].attrs["long_name"] == "sample complexity α = n/d"
    assert dataset["test_error_stderr"].attrs["long_name"] == "standard error of the test error"
    assert dataset["train_loss"].attrs["units"] == "1"


def test_gain_is_that_of_the_winner(dataset):
    cell = dataset.sel(omega=0.3, alpha=1.7)
    expected = cell["linear_test_error"] - cell["test_error"].sel(branch="semantic")
    np.testing.assert_allclose(cell["test_gain"], expected)
    assert cell["test_gain"] > 0


def test_round_trip_and_figure(dataset, tmp_path):
    path = write_dataset(dataset, tmp_path / "d.nc")
    with xr.open_dataset(path) as loaded:
        figure = dp.plot.diagram(loaded.load(), tmp_path / "d.png")
    assert (tmp_path / "d.png").stat().st_size > 20_000
    lines = [line for axis in figure.axes[:2] for line in axis.get_lines()]
    assert any(np.allclose(line.get_xdata(), dataset["alpha_c"], equal_nan=True) for line in lines)


def test_any_family_of_models():
    settings = dp.SolverSettings(log2_points=12, seed=3)
    family = dp.diagram(
        lambda ridge: dp.positional_semantic(ridge=ridge), [1.4, 1.7], [0.01, 0.02], "ridge",
        settings=settings,
    )  # fmt: skip
    assert family["train_loss"].dims == ("branch", "ridge", "alpha")
    assert (family.attrs["parameter"], family.attrs["seed"]) == ("ridge", 3)
    alone = dp.solve(dp.positional_semantic(ridge=0.02), 1.7, settings=settings)
    cell = family.sel(branch="semantic", ridge=0.02, alpha=1.7)
    assert float(cell["train_loss"]) == pytest.approx(alone.train_loss, rel=1e-3)


@pytest.mark.parametrize(
    ("alphas", "omegas", "field"),
    [([1.0], [0.3], "alphas"), ([2.0, 1.0], [0.3], "alphas"), ([1.0, 2.0], [], "omega"),
     ([1.0, 2.0], [0.3, 1.3], "omega")],
)  # fmt: skip
def test_bad_grids_are_refused(alphas, omegas, field):
    with pytest.raises(ValueError, match=f"^{field} = "):
        dp.diagram(lambda omega: dp.positional_semantic(omega), alphas, omegas)


def test_missing_minima_are_filled_by_gradient_descent(dataset, monkeypatch):
    def descend(model, alpha, start, **rule):
        assert rule["steps"] == 127 and (start == "semantic" or abs(start.m[0, 0]) == 1000**-0.5)
        return SimpleNamespace(values={"train_loss": alpha, "test_error": 2 * alpha})

    monkeypatch.setattr(filled_diagram, "descend", descend)
    seen = []
    filled = dp.analysis.fill_diagram(dataset, dp.positional_semantic, progress=seen.append)
    missing = dataset["kind"] == "missing"
    assert len(seen) == int(missing.sum()) > 2
    alphas = dataset["alpha"].broadcast_like(missing).where(missing)
    xr.testing.assert_equal(filled["reached_loss"].drop_attrs(), alphas.transpose(*missing.dims))
    at = filled.sel(omega=0.9, alpha=0.5)
    other = float(at["train_loss"].sel(branch="positional"))
    assert float(at["reached_difference"]) == pytest.approx(0.5 - other)
    gap, reached = filled_diagram.filled_difference(filled)
    assert bool(reached.sel(omega=0.9, alpha=0.5)) and float(gap.sel(omega=0.9, alpha=0.5)) > 0
    assert not bool((reached & dataset["loss_difference"].notnull()).any())
    figure = dp.plot.diagram(filled)
    (dots,) = [line for line in figure.axes[0].get_lines() if "descent" in str(line.get_label())]
    assert len(dots.get_xdata()) == int(reached.sum())
