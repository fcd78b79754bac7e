"""Items beyond the paper at sizes of seconds: theory and training agree, figures are drawn."""

import numpy as np
import pytest
import xarray as xr

from dotphase.report.items import lengths, untied
from dotphase.report.store import Parts
from dotphase.report.sweeps import trained_crossing


def test_untied_theory_and_training_agree(tmp_path):
    sizes = {"students": ["untied"], "alphas": [2.0, 2.8], "points": 12, "d": 160, "seeds": 3}
    datasets = untied.compute(Parts(tmp_path), sizes | {"trained": [2.8]})
    rows = {row.quantity: row for row in untied.compare(datasets)}
    assert rows["theta"].verdict == "agrees" and rows["theta"].ours > 0.15
    assert rows["m"].verdict == "agrees" and rows["m"].ours > 0.3
    assert np.isnan(rows["alpha_c"].ours)  # one alpha has no crossing
    # The jump is still there, at much larger alpha than with tied weights (1.25).
    assert 2.0 < float(datasets["theory-untied"]["crossing"]) < 2.6
    assert len(untied.draw(datasets).axes) == 3
    assert "alpha_c = 2" in untied.remarks(datasets)[0]


def test_three_tokens_theory_and_training_agree(tmp_path):
    sizes = {"alphas": {3: [0.8]}, "points": 12, "d": 160, "seeds": 3, "ranks": []}
    datasets = lengths.compute(Parts(tmp_path), sizes | {"trained": {3: [0.8]}})
    rows = {row.quantity: row for row in lengths.compare(datasets)}
    assert rows["theta"].verdict == "agrees" and rows["theta"].ours > 0.05
    assert rows["m"].verdict == "agrees" and rows["m"].ours > 0.15
    assert any("leave it" in line for line in lengths.remarks(datasets))
    assert len(lengths.draw(datasets)[""].axes) == 4


def paired(difference, noise=0.0):
    """Runs at three alphas with a given mean difference of the training losses."""
    alphas = [1.0, 2.0, 3.0]
    loss = np.zeros((3, 2, 2))
    loss[:, :, 0] = np.asarray(difference)[:, None] + noise * np.array([-1.0, 1.0])
    coords = {"alpha": alphas, "start": ["semantic", "positional"]}
    return xr.Dataset({"train_loss": (("alpha", "seed", "start"), loss)}, coords)


def test_trained_crossing_is_interpolated():
    assert trained_crossing(paired([3.0, 1.0, -3.0]))[0] == pytest.approx(2.25)
    place, error = trained_crossing(paired([3.0, 1.0, -3.0], noise=0.4))
    assert place == pytest.approx(2.25)
    assert error == pytest.approx(0.1 * np.hypot(0.75, 0.25))
    assert np.isnan(trained_crossing(paired([3.0, 2.0, 1.0]))[0])


def map_of(winners, found):
    coords = {"branch": ["semantic", "positional"], "omega": [0.0, 0.5], "alpha": [1.0, 2.0]}
    dims = ("omega", "alpha")
    both = np.stack([np.asarray(found), np.full((2, 2), "positional")])
    return xr.Dataset(
        {"winner": (dims, winners), "found": (("branch", *dims), both),
         "winner_trusted": (dims, [[1, 1], [0, 1]])}, coords,
    )  # fmt: skip


def test_winners_are_named_by_their_mechanism():
    from dotphase.figures.families import mechanism, plot_winners

    some = map_of(
        [["semantic", "positional"], ["semantic", "none"]],
        [["mixed", "semantic"], ["semantic"] * 2],
    )
    expected = [["mixed", "positional"], ["semantic", "none"]]
    np.testing.assert_array_equal(mechanism(some).values, expected)
    figure = plot_winners([("one", some), ("two", some)])
    assert len(figure.axes) == 2 and figure.axes[0].lines  # a cross where it is not trusted
