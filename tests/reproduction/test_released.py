"""The released tables, the released procedure, and students trained as the released ones."""

import numpy as np
import pytest
import xarray as xr
from scipy import stats

from reproduction.items import released
from reproduction.released import procedure
from reproduction.released.grids import MAPS, Grid
from reproduction.released.runs import LR, STEPS, step_size, steps_of
from reproduction.released.tables import (
    by_chance,
    combine,
    expected_width,
    list_values,
    table,
    worst,
)


def test_the_released_tables_are_all_there():
    sizes = {name: dict(table(name).sizes) for name in ("maps", "slices", "dimensions", "rank2")}
    assert sizes["maps"] == {"mixing": 2, "omega": 27, "alpha": 25, "start": 2}
    assert sizes["slices"] == {"alpha": 25, "start": 2, "slice": 5}
    assert sizes["dimensions"] == {"d": 10, "start": 2} and table("theory").sizes["point"] == 120
    assert sizes["rank2"] == {"omega": 27, "alpha": 49}
    for name in sizes:
        assert "SPOC-group/positional-and-semantic-attention" in table(name).attrs["source"]
        assert all(bool(part.notnull().all()) for part in table(name).data_vars.values())
    one = table("maps").sel(mixing="standard", omega=0.3, start="semantic")
    assert float(one["test_error"].sel(alpha=2.0, method="nearest")) == pytest.approx(
        0.001443, rel=1e-3
    )


def test_steps_decay_as_much_as_the_released_ones():
    for ridge in (0.1, 0.01, 0.001):
        lr = step_size(0.5)
        assert (1 - lr * ridge) ** steps_of(lr, ridge) == pytest.approx(
            (1 - LR * ridge) ** STEPS, rel=0.2 if ridge == 0.1 else 0.02
        )
    assert step_size(1.0) == LR and step_size(0.3) == step_size(0.5)


def like(values, spread, runs=24, shift=0.0):
    """Runs at the places of the map whose means scatter around given values as they should."""
    rng = np.random.default_rng(3)
    grid = MAPS["full"]["standard"]
    coords = {"alpha": list(grid.alphas), "omega": list(grid.omegas), "seed": np.arange(runs)}
    places = table("maps").sel(mixing="standard", drop=True)
    shape = (25, 27, runs, 2)
    mean = values.transpose("alpha", "omega", "start").values[:, :, None]
    noise = spread.transpose("alpha", "omega", "start").values[:, :, None]
    ours = mean + noise * (
        rng.normal(size=shape) + shift + rng.normal(size=(25, 27, 1, 2)) / runs**0.5
    )
    coords["start"] = places["start"].values
    return xr.Dataset({"train_loss": (("alpha", "omega", "seed", "start"), ours)}, coords)


@pytest.mark.parametrize(("shift", "verdict"), [(0.0, "agrees"), (None, "differs")])
def test_differences_are_a_unit_normal_and_a_shift_is_seen(shift, verdict):
    there = table("maps").sel(mixing="standard", drop=True)
    parts = there["train_loss"], there["train_loss_std"]
    labels = {"sigma": 0.5, "ridge": 0.01, "d": 1000, "mixing": "standard"}

    def rows_of(shift):
        names = {"train_loss": "train_loss"}
        return combine([list_values("maps", there, like(*parts, shift=shift), names, **labels)])

    rows = rows_of(0.0)
    mean, width = released._distribution(rows, {}, "train_loss")
    if shift is None:  # as much as the line says that it catches, in standard errors
        rows = rows_of(mean.catches / 24**0.5 * 2**0.5)
        mean, _ = released._distribution(rows, {}, "train_loss")
    assert rows.sizes["row"] == 27 * 25 * 2
    assert float(rows["difference"].std()) == pytest.approx(expected_width(rows), abs=0.06)
    assert mean.verdict == verdict and width.verdict == "agrees"
    assert float(abs(worst(rows, 3)["difference"]).min()) > 3


def test_the_released_procedure_gives_the_released_solutions():
    there = table("theory")
    here = released._of_table(there, "standard", 0.3, "positional")[::6]
    points = procedure.problem(there["alpha"].values[here], 0.3)
    solved = procedure.solve(points, "positional")
    np.testing.assert_allclose(solved.overlaps.V, there["V"].values[here], rtol=1e-3)
    np.testing.assert_allclose(solved.overlaps.m, there["m"].values[here], rtol=1e-3)
    np.testing.assert_allclose(
        2 * solved.test_error, there["test_error_times_L"].values[here], rtol=1e-3
    )
    np.testing.assert_allclose(
        solved.train_loss, -there["minus_train_loss"].values[here], rtol=2e-3
    )
    wrong = procedure.solve(points, "positional", fixed=procedure.degree_eleven())
    assert np.max(np.abs(wrong.overlaps.V / there["V"].values[here] - 1)) > 0.005


def test_a_local_minimisation_need_not_find_the_global_minimum():
    centre = (np.array([[0.9]]), np.array([[-0.9]]))
    target = (np.array([[0.5]]), np.array([[0.5]]))
    V, rho = np.array([[30.0]]), np.array([[0.25]])
    (x, y), energy = procedure.local_minimum(centre, target, V, rho)
    assert abs(float(x[0, 0])) < 0.9 and float(energy[0, 0]) <= (0.81 * 2) / 60 + 1e-12
    assert float(x[0, 0]) == pytest.approx(-float(y[0, 0]))


def test_grids_of_other_settings_have_other_data():
    one, other = Grid((1.5,), (0.3,), 2, d=20), Grid((1.5,), (0.3,), 2, d=20, mixing="other")
    assert one.seed != other.seed and one.seed == Grid((1.5,), (0.3,), 2, d=20).seed


def test_two_runs_that_agree_by_chance_are_no_outlier():
    labels = {name: ("row", ["x"]) for name in ("table", "quantity")}
    numbers = {"value": 1.0, "spread": 0.01, "ours": 1.05, "ours_spread": 0.04, "runs": 24}
    columns = {name: ("row", [value]) for name, value in numbers.items()} | labels
    rows = combine([xr.Dataset(columns | {"ours_runs": ("row", [count])}) for count in (2, 24)])
    few, many = by_chance(rows, rows["difference"].values)
    assert few == pytest.approx(2 * stats.t.sf(float(rows["difference"][0]), 1))
    assert few > 0.1 and many < 1e-4


def test_values_without_a_released_spread_are_named_with_the_others():
    rows = xr.Dataset(
        {"stands_in": ("row", [0, 1, 1, 1]), "difference": ("row", [9.0, 4.0, -1.0, 0.0]),
         "quantity": ("row", ["m", "m", "m", "m"])}
    )  # fmt: skip
    assert "3 values (rank two)" in released._stand_ins(rows)
    assert "1 lie beyond 3, with widths up to 2.65" in released._stand_ins(rows)
    assert released._stand_ins(rows.isel(row=[0])) == ""
