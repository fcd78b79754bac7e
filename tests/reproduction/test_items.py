"""The items themselves, at sizes of seconds: they compute, compare and draw."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr

import dotphase as dp
from reproduction.items import (
    concentration,
    descents,
    distances,
    gamp,
    histogram,
    slices,
    starts,
    structured,
    transition,
)
from reproduction.phase import _trained_alpha_c, agreement, phase_item, published_omegas
from reproduction.released.grids import Grid
from reproduction.store import Parts
from reproduction.sweeps import DESCENT

#: Small enough for seconds; training has the same shape everywhere, and is compiled once: four
#: cells, with data sets that are padded to the same size.
D, ALPHAS = 40, [1.5, 2.0]


@pytest.fixture(scope="module")
def few_steps():
    """Descents of few steps."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(DESCENT, "steps", 5)
        patch.setitem(transition.FLOW, "steps", 5)
        yield


@pytest.fixture(scope="module")
def small_grid():
    """Students of two cells, trained as released, that all items share."""
    return Grid(ALPHAS, (0.0, 0.3), 2, d=D)


@pytest.fixture(scope="module")
def found(few_steps, small_grid, tmp_path_factory):
    """Datasets of the transition at a small size."""
    folder = tmp_path_factory.mktemp("report") / "transition"
    sizes = {
        "alphas": [1.005, 1.5025, 2.0],
        "rtol": 1e-1,
        "max_log2_points": 12,
        "critical_points": 12,
    }
    sizes |= {"d": D, "grid": small_grid, "ends": [1.5, 2.0], "log2_ensemble": 8}
    return transition.compute(Parts(folder), sizes)


def test_transition_compares_every_published_number(found):
    rows = transition.compare(found)
    published = [row for row in rows if row.origin.startswith("arXiv")]
    assert len(published) == 2 + 1 + 18
    by_name = {row.quantity: row for row in published}
    assert by_name["linear_test_error"].verdict == "agrees"
    assert by_name["alpha_l"].ours == pytest.approx(1.49, abs=0.05)
    theory = [row for row in rows if row.origin.startswith("theory")]
    assert theory and all(row.at["alpha"] in transition.PUBLISHED for row in theory)
    assert all(math.isfinite(row.ours) for row in rows)


def test_transition_is_drawn(found):
    figure = transition.draw(found)
    assert len(figure.axes) == 3
    assert figure.axes[0].get_lines()
    assert any("alpha_c = " in line for line in transition.remarks(found))


def test_descents_at_a_small_size(few_steps, tmp_path, monkeypatch):
    """The ensembles of the transition, and two of the rules, so that little is compiled."""
    rules = {name: descents.RULES[name] for name in ("plain", "tenth")}
    monkeypatch.setattr(descents, "RULES", rules)
    sizes = {
        "slices": ["ridge-0.001"], "lengths": {}, "alphas": ALPHAS, "minima": {"log2_points": 12},
        "log2_ensemble": 8, "d": D, "seeds": 2, "scales": [1.0], "basins": ([2.0], 2),
        "random": {100: ([2.0], 2)}, "random_rule": {"steps": 5},
        "rule": {"alpha": 2.0, "lr": 4.0, "steps": 5},
    }  # fmt: skip
    datasets = descents.compute(Parts(tmp_path), sizes)
    figures = descents.draw(datasets)
    assert {name: len(figure.axes) for name, figure in figures.items()} == {
        "": 2, "random": 3, "rules": 2,
    }  # fmt: skip
    rows = descents.compare(datasets)
    assert [row.at["rule"] for row in rows[-2:]] == [text for text, _ in rules.values()]
    lines = descents.remarks(datasets)
    assert any("end semantic at d = 100 (dynamics), by alpha: 2:" in line for line in lines)
    assert sum("of its lowest loss from step" in line for line in lines) == 2


def diagram_and_runs(signs):
    """A map of two by two cells with given signs of the trained difference."""
    coords = {"omega": [0.0, 0.5], "alpha": [1.0, 2.0]}
    predicted = xr.DataArray([[-1.0, -2.0], [1.0, np.nan]], coords)
    loss = xr.DataArray(np.zeros((2, 2, 1, 2)), {
        "alpha": [1.0, 2.0], "omega": [0.0, 0.5], "seed": [0], "start": ["semantic", "positional"],
    })  # fmt: skip
    loss[..., 0, 0] = np.asarray(signs).T
    return xr.Dataset({"loss_difference": predicted}), xr.Dataset({"train_loss": loss})


def test_agreement_weights_cells_by_their_predicted_difference():
    assert agreement(*diagram_and_runs([[-1, -1], [1, 1]])) == (3, 1.0)
    cells, share = agreement(*diagram_and_runs([[-1, 1], [1, 1]]))
    assert cells == 3 and share == pytest.approx(0.5)  # the cell of weight 2 of 4 is lost


def test_phase_maps_compare_all_published_lines():
    assert published_omegas() == [0.0, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.38, 0.4, 0.425]
    theory, runs = diagram_and_runs([[-1, -1], [1, 1]])
    lines = xr.Dataset(coords={"omega": published_omegas()})
    for name, value in (("alpha_c", 1.0), ("alpha_l", np.nan)):
        lines[name] = ("omega", np.full(10, value))
        lines[f"{name}_stderr"] = ("omega", np.full(10, 1e-3))
    lines["trusted"] = ("omega", np.ones(10, bool))
    known = xr.Dataset(
        {"alpha_c": ("omega", [1.262]), "alpha_l": ("omega", [1.45])}, {"omega": [0.3]}
    )
    datasets = {"theory": theory, "runs": runs, "lines": lines, "procedure": known}
    rows = phase_item("standard", "x").compare(datasets)
    assert [row.verdict for row in rows[:9]] == ["published is off"] * 9
    assert "the released procedure gives 1.262" in rows[5].why and rows[5].at == {"omega": 0.3}
    assert len(rows) == 17 and all(row.verdict == "differs" for row in rows[9:])  # NaN never passes


def test_crossings_of_students_are_outside_a_theory_that_is_not_trusted():
    """A straight line through zero at alpha = 1.3, with a little noise."""
    alpha, rng = np.linspace(0.9, 1.7, 9), np.random.default_rng(0)
    loss = np.zeros((9, 2, 4, 2))
    loss[..., 0] = (1.3 - alpha)[:, None, None] + 1e-4 * rng.normal(size=(9, 2, 4))
    coords = {"alpha": alpha, "omega": [0.3, 0.4], "start": ["semantic", "positional"]}
    runs = xr.Dataset({"train_loss": (("alpha", "omega", "seed", "start"), loss)}, coords)
    lines = xr.Dataset(
        {"alpha_c": ("omega", [1.3, 1.3]), "alpha_c_stderr": ("omega", [1e-3, 1e-3]),
         "trusted": ("omega", [1, 0])}, {"omega": [0.3, 0.4]},
    )  # fmt: skip
    crossings = _trained_alpha_c(lines, runs.assign_attrs(d=1000))
    assert [row.verdict for row in crossings] == ["agrees", "outside the theory"]
    for error, word in ((0.3, "moves alpha_c by 0.3"), (1e-3, "the error estimate fails here")):
        shifted = lines.assign(alpha_c_model_error=("omega", [error] * 2))
        shifted["alpha_c"] = lines["alpha_c"] - 0.1
        row = _trained_alpha_c(shifted, runs.assign_attrs(d=1000))[1]
        assert row.why.endswith(word)
    moved = _trained_alpha_c(lines.assign(alpha_c=lines["alpha_c"] + crossings[0].catches),
                               runs.assign_attrs(d=1000))  # fmt: skip
    assert [row.verdict for row in moved] == ["differs", "outside the theory"]


def test_phase_maps_at_a_small_size(tmp_path, small_grid):
    item = phase_item("other", "x")
    sizes = {"alphas": ALPHAS, "omegas": [0.0, 0.3], "log2_points": 12, "grid": small_grid}
    datasets = item.compute(Parts(tmp_path / "phase"), sizes)
    assert "lines" not in datasets
    assert len(item.draw(datasets).axes) == 6
    assert any("2 x 2 cells" in line for line in item.remarks(datasets))


def runs_like(limit, slope, noise, dimensions=(10, 100, 200, 400), seeds=200):
    """Runs whose mean is ``limit + slope/d`` and whose spread is ``noise/sqrt(d)``."""
    rng = np.random.default_rng(0)
    d = np.array(dimensions)
    shape = (len(d), 2, seeds)
    values = (
        limit
        + slope / d[:, None, None]
        + noise / np.sqrt(d)[:, None, None] * rng.normal(size=shape)
    )
    coords = {"d": d, "start": ["semantic", "positional"]}
    return xr.Dataset({"theta": (("d", "start", "seed"), values)}, coords)


def test_concentration_extrapolates_and_fits_the_spread():
    runs = runs_like(0.13, slope=-2.0, noise=0.5)
    value, error = concentration.limit(runs, "semantic", "theta")
    assert abs(value - 0.13) < 4 * error and error < 0.01
    slope, slope_error = concentration.spread_exponent(runs, "semantic", "theta")
    assert abs(slope + 0.5) < 4 * slope_error


def test_slices_at_a_small_size(tmp_path, monkeypatch, small_grid):
    monkeypatch.setattr(slices, "SLICES", {"sigma": (0.5, 0.4)})
    monkeypatch.setattr(slices, "MAPS", {"quick": {"standard": small_grid}})
    other = Grid(ALPHAS, (0.3,), 2, d=D, sigma=0.4)
    monkeypatch.setattr(slices, "slice_grid", lambda scale, sigma, ridge: other)
    sizes = {"alphas": ALPHAS, "rtol": 1e-1, "max_log2_points": 12, "scale": "quick"}
    datasets = slices.compute(Parts(tmp_path / "slices"), sizes)
    assert {"theory-base", "runs-base", "theory-sigma-0.4", "runs-sigma-0.4"} <= set(datasets)
    assert {name: len(each.axes) for name, each in slices.draw(datasets).items()} == {
        "": 1, "overlaps": 2,
    }  # fmt: skip
    rows = slices.compare(datasets)
    assert {row.at["slice"] for row in rows} >= {"base"}
    assert "0.5:" in slices.remarks(datasets)[0]


def test_training_on_structured_tokens_agrees_with_theory(tmp_path, monkeypatch):
    monkeypatch.setattr(structured, "EXPONENTS", (1.0,))
    sizes = {
        "alphas": [2.0],
        "rtol": 1e-2,
        "max_log2_points": 12,
        "d": 256,
        "seeds": 8,
        "trained": [2.0],
    }
    sizes |= {"exponents": [0.0], "critical_points": 12, "search": (0.9, 2.0), "token_seeds": 0}
    datasets = structured.compute(Parts(tmp_path), sizes)
    rows = structured.compare(datasets)
    assert [row.quantity for row in rows] == [
        "train_loss", "test_error", "theta", "train_loss", "test_error", "m",
    ]  # fmt: skip
    # The test error is above its limit by more than 10/d at this small d, for white tokens too;
    # tests of `attention_error` hold it to sampled sentences at d = 8.
    near = [row for row in rows if row.quantity != "test_error"]
    assert all(abs(row.difference) < row.allowed for row in near)
    white = dp.solve(dp.positional_semantic(), 2.0, log2_points=12).train_loss
    assert abs(rows[0].ours - white) > rows[0].allowed  # white tokens would not have passed
    lines = structured.remarks(datasets)
    assert "alpha_c = 1.2" in lines[0] and "are missing" in lines[1]
    assert len(structured.draw(datasets).axes) == 2


def test_real_tokens_are_compared_with_gaussian_ones(monkeypatch):
    rng = np.random.default_rng(0)
    values = 1 + 0.1 * rng.normal(size=(1, 8, 2))
    coords = {"alpha": [2.0], "start": ["semantic", "positional"]}
    names = ("train_loss", "test_error", "theta", "m")
    like, same, other = (
        xr.Dataset(dict.fromkeys(names, (("alpha", "seed", "start"), factor * values)), coords)
        for factor in (1.0, 1 + 1e-9 * rng.normal(), 1.3)
    )
    assert {row.verdict for row in structured._universality(like, other, "raw")} == {"differs"}
    nearly = same + 1e-3 * rng.normal(size=values.shape)
    rows = structured._universality(like, nearly, "raw")
    assert len(rows) == 6 and rows[0].stderr < 1e-3  # the teachers' noise has dropped out


def test_starts_at_a_small_size(tmp_path, monkeypatch):
    monkeypatch.setattr(starts, "D", 20)
    monkeypatch.setattr(starts, "THEORY", starts.THEORY | {"rtol": 1e-1, "max_log2_points": 12})
    datasets = starts.compute(Parts(tmp_path), {"seeds": 2})
    assert datasets["runs"].sizes == {"optimizer": 2, "start": 3, "seed": 2}
    assert len(starts.compare(datasets)) == 2
    assert len(starts.remarks(datasets)) == 6
    assert len(starts.draw(datasets).axes) == 6  # a panel for each optimizer and start


def test_gamp_at_a_small_size(tmp_path):
    datasets = gamp.compute(Parts(tmp_path), {"d": D, "seeds": 2, "iterations": 5})
    rows = gamp.compare(datasets)
    assert len(rows) == 5 and rows[-1].quantity == "cosine with the trained student"
    assert len(gamp.draw(datasets).axes) == 2
    assert len(gamp.remarks(datasets)) >= 2


class Counted(SimpleNamespace):
    """As much of an experiment as the comparisons read."""

    mechanisms = ("semantic", "positional")

    def rows(self, mechanism):
        return np.array([self.mechanisms.index(mechanism)])


def test_distances_are_compared_only_after_as_many_epochs_as_published():
    moved = SimpleNamespace(
        summed_after_release=np.array([0.5, 0.6]), summed_from_start=np.array([160.0, 159.0])
    )
    short = SimpleNamespace(epochs=60, release_epochs=5, target=0.998)
    assert distances.compare({"experiment": Counted(distances=moved, settings=short)}) == []
    long = SimpleNamespace(epochs=200, release_epochs=100, target=None)
    rows = distances.compare({"experiment": Counted(distances=moved, settings=long)})
    assert [row.verdict for row in rows[2:]] == ["agrees", "differs"]  # one run has no spread
    still = SimpleNamespace(
        summed_after_release=np.array([0.0, 0.0]), summed_from_start=moved.summed_from_start
    )
    rows = distances.compare({"experiment": Counted(distances=still, settings=long)})
    assert [row.verdict for row in rows[:2]] == ["differs", "differs"]  # a network that stays


def test_published_shares_are_read_off_the_right_cells(monkeypatch):
    weights = np.full((10, 10), 0.05)
    np.fill_diagonal(weights, 0.55)
    weights[2, 3] = 0.25  # C on the other C
    monkeypatch.setattr(histogram, "attention", lambda network, text: weights)
    some = SimpleNamespace(rows=lambda m: np.arange(2), network=lambda m, run: run)
    shares = histogram.published_shares(some, "positional")
    assert shares["diagonal"] == pytest.approx(0.55)
    assert shares["off the diagonal"] == pytest.approx(0.05 + 0.2 / 90)
    assert shares["B on each B"] == pytest.approx((6 * 0.55 + 30 * 0.05) / 36)
    assert shares["C on each C, D on each D"] == pytest.approx((4 * 0.55 + 3 * 0.05 + 0.25) / 8)
