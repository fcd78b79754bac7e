"""Items beyond the paper at sizes of seconds: theory and training agree, figures are drawn."""

import numpy as np
import pytest
import xarray as xr

from dotphase.experiments.training.averages import fitted_alpha_c, trained_alpha_c
from reproduction.figures.concentration import spread_over_runs
from reproduction.items import baselines, bayes, dynamics, lengths, limits, slices, untied
from reproduction.store import Parts


def branches(alpha_c, alpha_l):
    """Straight curves that cross at given places, as `dotphase.curve` returns them."""
    alphas = np.array([1.0, 1.4, 2.0])
    dims, shape = ("branch", "alpha"), (2, 3)
    loss = np.stack([alpha_c - alphas, np.zeros(3)])
    error = np.stack([1 + alpha_l - alphas, np.full(3, 2.0)])
    values = {"train_loss": loss, "test_error": error, "theta": [[0.2] * 3, [0.0] * 3]}
    values["m"] = [[0.0] * 3, [0.3] * 3]
    found = {name: (dims, np.asarray(value)) for name, value in values.items()}
    for name in ("theta", "m", "test_error"):
        found[f"{name}_stderr"] = (dims, np.full(shape, 0.01))
    found["on_branch"] = (dims, np.ones(shape, bool))
    found["trusted"] = (dims, np.array([[0, 1, 1], [1, 1, 1]], bool))
    found |= {"linear_test_error": 1.0, "alpha_c": alpha_c, "alpha_c_stderr": 0.02}
    coords = {"branch": ["semantic", "positional"], "alpha": alphas}
    return xr.Dataset(found, coords, {"sigma": 0.5})


def trained(theory):
    """Two runs from each start and alpha that end where the theory says."""
    names = ("train_loss", "test_error", "theta", "m")
    runs = theory[list(names)].rename(branch="start").expand_dims(omega=[0.3], seed=[0, 1])
    return runs.assign_attrs(d=100)


def test_lengths_are_read_off_the_curves():
    """From curves made up; `tests/theory` holds three tokens to training."""
    datasets = {}
    for length, places in ((2, (1.7, 1.8)), (3, (1.2, 1.3))):
        datasets[f"theory-{length}"] = theory = branches(*places)
        datasets[f"runs-{length}"] = trained(theory)
    found = lengths.lines(datasets)
    np.testing.assert_allclose(found["alpha_c"], [1.7, 1.2])
    np.testing.assert_allclose(found["trained"], [1.7, 1.2])
    np.testing.assert_allclose(found["alpha_l"], [1.8, 1.3])
    np.testing.assert_allclose(found["alpha_l_stderr"], 0.01)
    assert found["trusted"].values.tolist() == [1, 0]
    rows = lengths.compare(datasets)
    # Made-up errors of 5% are too coarse for a verdict, but not for a difference of half.
    assert len(rows) == 4 and all(row.verdict == "no verdict" for row in rows)
    assert all(row.difference == 0 for row in rows)
    assert any("not trusted for L = 3." in line for line in lengths.remarks(datasets))
    assert len(lengths.draw(datasets)[""].axes) == 4
    datasets["runs-3"] = trained(branches(1.2, 1.3) * 1.5)
    assert [row.verdict for row in lengths.compare(datasets)].count("differs") == 2


def runs_of(theta, m):
    """Runs from both starts at one alpha, with given overlaps of the positional ones."""
    coords = {"start": ["semantic", "positional"], "seed": np.arange(len(m))}
    parts = {"theta": [np.full(len(m), 0.2), theta], "m": [np.zeros(len(m)), m]}
    return xr.Dataset({name: (("start", "seed"), value) for name, value in parts.items()}, coords)


def test_runs_that_left_their_minimum_are_told():
    runs = runs_of(theta=[0.0, 0.15], m=[0.25, 0.01])
    assert lengths.stayed(runs, "positional").values.tolist() == [True, False]
    assert lengths.stayed(runs, "semantic").values.all()


def paired(difference, noise=0.0):
    """Runs at three alphas with a given mean difference of the training losses."""
    alphas = [1.0, 2.0, 3.0]
    loss = np.zeros((3, 2, 2))
    loss[:, :, 0] = np.asarray(difference)[:, None] + noise * np.array([-1.0, 1.0])
    coords = {"alpha": alphas, "start": ["semantic", "positional"]}
    return xr.Dataset({"train_loss": (("alpha", "seed", "start"), loss)}, coords)


def test_trained_alpha_c_is_interpolated():
    assert trained_alpha_c(paired([3.0, 1.0, -3.0]))[0] == pytest.approx(2.25)
    place, error = trained_alpha_c(paired([3.0, 1.0, -3.0], noise=0.4))
    assert place == pytest.approx(2.25)
    assert error == pytest.approx(0.1 * np.hypot(0.75, 0.25))
    assert np.isnan(trained_alpha_c(paired([3.0, 2.0, 1.0]))[0])


def test_fitted_alpha_c_is_the_root_of_a_parabola():
    alpha = np.linspace(0.6, 1.4, 9)
    loss = np.zeros((9, 1, 2))
    loss[:, 0, 0] = 1.1**2 - alpha**2
    coords = {"alpha": alpha, "start": ["semantic", "positional"]}
    runs = xr.Dataset({"train_loss": (("alpha", "seed", "start"), loss)}, coords)
    place, error = fitted_alpha_c(runs, 1.0)
    assert place == pytest.approx(1.1) and error < 1e-6
    assert np.isnan(fitted_alpha_c(runs.isel(alpha=slice(5)), 1.0)[0])
    assert np.isnan(fitted_alpha_c(runs, np.nan)[0])


def test_crossings_are_read_where_both_minima_are_kept():
    runs = paired([3.0, 1.0, -3.0])
    shape = (("alpha", "seed", "start"), np.zeros((3, 2, 2)))
    runs = runs.assign(theta=shape, m=shape).copy(deep=True)
    runs["theta"].loc[{"start": "semantic"}] = 0.2
    runs["m"].loc[{"start": "positional"}] = 0.2
    assert lengths.both_minima(runs).sizes["alpha"] == 3
    runs["m"].loc[{"start": "positional", "alpha": 3.0}] = 0.0
    runs["theta"].loc[{"start": "positional", "alpha": 3.0}] = 0.2
    assert np.isnan(trained_alpha_c(lengths.both_minima(runs))[0])


def map_of(winners, found):
    coords = {"branch": ["semantic", "positional"], "omega": [0.0, 0.5], "alpha": [1.0, 2.0]}
    dims = ("omega", "alpha")
    both = np.stack([np.asarray(found), np.full((2, 2), "positional")])
    return xr.Dataset(
        {"winner": (dims, winners), "found": (("branch", *dims), both),
         "winner_trusted": (dims, [[1, 1], [0, 1]])}, coords,
    )  # fmt: skip


def test_winners_are_named_by_their_mechanism():
    from reproduction.figures.winners import mechanism, plot_winners

    some = map_of(
        [["semantic", "positional"], ["semantic", "none"]],
        [["mixed", "semantic"], ["semantic"] * 2],
    )
    expected = [["mixed", "positional"], ["semantic", "none"]]
    np.testing.assert_array_equal(mechanism(some).values, expected)
    figure = plot_winners([("one", some), ("two", some)])
    assert len(figure.axes) == 2 and figure.axes[0].lines  # a cross where it is not trusted


def test_dynamics_is_drawn_and_told():
    axes, kinds = ("optimizer", "alpha", "seed", "scale"), np.full((1, 2, 3, 2), "semantic")
    found = xr.Dataset(
        {"mechanism": (axes, kinds), "outcome": (axes, np.ones(kinds.shape))},
        {"optimizer": ["gd"], "alpha": [1.0, 4.0], "scale": [0.01, 1.0]},
        {"d": 40},
    )
    flow = dynamics._flow(20.0)
    assert float(flow["positional_ends"]) == pytest.approx(5.47, abs=0.03)
    tau = flow["tau"].values[::40]
    runs = flow[["m", "theta", "q"]].sel(tau=tau).assign_attrs(alpha=20.0)
    for name in ("m", "theta", "q"):
        runs[f"{name}_stderr"] = 0.01 * runs[name]
    datasets = {"runs-basins": found, "runs-descent": runs, "theory-flow": flow}
    datasets |= {
        f"theory-field-{k}": dynamics._field(alpha, 7) for k, alpha in enumerate(dynamics.FIELDS)
    }
    assert all(abs(row.difference) < row.allowed for row in dynamics.compare(datasets))
    worse = datasets | {"runs-descent": runs * 1.2}
    worse["runs-descent"].attrs["alpha"] = 20.0
    assert {row.verdict for row in dynamics.compare(worse)} == {"differs"}
    assert len(dynamics.remarks(datasets)) == 5
    drawn = dynamics.draw(datasets)
    assert len(drawn["flow"].axes) == 3 and drawn[""].axes


def test_untied_theory_and_training_agree(tmp_path):
    sizes = {"students": ["untied"], "alphas": [2.0, 2.8], "log2_points": 14, "d": 160, "seeds": 3}
    datasets = untied.compute(Parts(tmp_path), sizes | {"trained": [2.8]})
    rows = {row.quantity: row for row in untied.compare(datasets)}
    assert abs(rows["theta"].difference) < rows["theta"].allowed and rows["theta"].ours > 0.15
    assert abs(rows["m"].difference) < rows["m"].allowed and rows["m"].ours > 0.3
    assert np.isnan(rows["alpha_c"].ours)  # one alpha has no crossing
    # The jump is still there, at much larger alpha than with tied weights (1.25).
    assert 2.0 < float(datasets["theory-untied"]["alpha_c"]) < 2.6
    assert len(untied.draw(datasets).axes) == 3
    assert "alpha_c = 2" in untied.remarks(datasets)[0]


def test_bayes_and_limits_agree(tmp_path):
    sizes = {
        "alphas": [1.5],
        "rtol": 1e-1,
        "max_log2_points": 12,
        "lines": [0.3, 0.45],
        "samples": 20_000,
    }
    datasets = bayes.compute(Parts(tmp_path / "bayes"), sizes)
    rows = bayes.compare(datasets)
    assert [row.verdict for row in rows] == ["agrees"] * 4
    assert rows[1].ours == pytest.approx(0.786, abs=1e-3)
    assert bayes.draw(datasets).axes and len(bayes.remarks(datasets)) == 2
    sizes = {"alphas": [1.0, 2.0], "ridges": [0.01], "log2_points": 14, "paper_points": 13}
    datasets = limits.compute(Parts(tmp_path / "limits"), sizes)
    assert {row.verdict for row in limits.compare(datasets)} <= {"agrees", "no verdict"}
    assert len(limits.draw(datasets).axes) == 2
    assert "closed form is 100" in limits.remarks(datasets)[0]


def learners(linear, d=100):
    """Test errors of two learners on three data sets, and of a perceptron at another d."""
    values = np.array([[[0.003, 0.0031, 0.0032]], [[linear, linear + 2e-5, linear - 2e-5]]])
    over, coords = ("learner", "alpha", "seed"), {"alpha": [2.0]}
    names = ["attention, semantic start", "linear layer"]
    errors = xr.Dataset(
        {"test_error": (over, values), "linear_limit": 0.00197}, coords | {"learner": names}
    )
    alone = xr.Dataset({"test_error": (over, values[:1])}, coords | {"learner": ["perceptron"]})
    return {"errors": errors.assign_attrs(d=1000), "perceptron": alone.assign_attrs(d=d)}


def test_baselines_are_judged_by_the_limit_of_the_linear_layer():
    (row,) = baselines.compare(learners(0.00197))
    assert row.verdict != "differs"
    (row,) = baselines.compare(learners(0.00197 + row.catches))
    assert row.verdict == "differs"


def test_the_perceptron_says_its_dimension():
    assert (
        baselines.combine(learners(0.002)).learner.values[-1] == "perceptron on tokens, $d = 100$"
    )
    assert baselines.combine(learners(0.002, d=1000)).learner.values[-1] == "perceptron on tokens"
    lines = baselines.remarks(learners(0.002))
    assert len(lines) == 4 and lines[1].startswith("attention, semantic start: 2: 0.00310 ±")
    labels = [text.get_text() for text in baselines.draw(learners(0.002)).legends[0].get_texts()]
    assert "linear layer" not in labels and "linear positional layer" in labels


def test_the_error_of_a_spread_is_that_of_its_law():
    """For a normal law it is the spread over sqrt(2n)."""
    values = np.random.default_rng(0).normal(size=(2, 4000))
    spread, error = spread_over_runs(xr.DataArray(values, dims=("d", "seed")))
    np.testing.assert_allclose(error, spread / np.sqrt(8000), rtol=0.1)


def test_runs_that_leave_a_minimum_are_reported():
    over = ("omega", "start", "alpha", "seed")
    loss, m = np.ones((1, 1, 2, 3)), np.full((1, 1, 2, 3), 0.2)
    loss[..., 1, 0], loss[..., 0, 0], m[..., 0, :] = 0.1, 0.1, 0.01
    runs = xr.Dataset(
        {"train_loss": (over, loss), "m": (over, m)},
        {"omega": [0.3], "start": ["positional"], "alpha": [0.01, 2.0]},
    )
    (line,) = slices._escaped_runs("sigma-1", {"runs-sigma-1": runs})
    assert "alpha = 2: 1 of 3 runs" in line  # at .01 there is no positional minimum to leave
