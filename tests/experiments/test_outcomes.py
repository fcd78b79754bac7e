"""Random starts at any d."""

import numpy as np
import pytest

import dotphase as dp

SMALL = {"steps": 15, "momentum": 0.0}


@pytest.fixture(scope="module")
def runs():
    return dp.analysis.outcomes(dp.positional_semantic(), [2.0], [0.05, 0.1], 400, seeds=6, **SMALL)


def test_outcomes_have_the_form_of_basins(runs):
    assert runs["mechanism"].dims == ("alpha", "seed", "scale")
    assert runs["m"].shape == (1, 6, 2) and runs.attrs["d"] == 400
    shares = dp.analysis.basin_shares(runs)["share"]
    assert float(shares.sum("mechanism").min()) == pytest.approx(1.0)
    assert len(np.unique(runs["m"])) == 12  # every start is another


def test_the_same_seed_gives_the_same_descents_however_many(runs):
    again = dp.analysis.outcomes(dp.positional_semantic(), [2.0], [0.1], 400, seeds=2, **SMALL)
    np.testing.assert_allclose(again["m"].sel(scale=0.1), runs["m"].sel(scale=0.1)[:, :2])


def test_small_starts_end_positional(runs):
    """From small overlaps m grows faster than theta: most ends are positional."""
    assert float((runs["mechanism"] == "positional").mean()) > 0.6
    assert float(runs["m"].mean()) > 2 * float(runs["theta"].mean())


def test_descents_are_like_those_of_trained_students(runs):
    """Means over random starts and data sets of the same size, after the same steps."""
    rule = {"optimizer": "gd", "lr": 4.0, "steps": 15, "start": "random", "scale": 0.1}
    students = dp.train(dp.positional_semantic(), alpha=2.0, d=400, seeds=6, **rule).runs
    for name in ("train_loss", "m"):
        trained = np.array([getattr(run, name) for run in students])
        ours = runs[name].sel(scale=0.1).values.ravel()
        error = np.hypot(trained.std(ddof=1), ours.std(ddof=1)) / np.sqrt(6)
        assert abs(trained.mean() - ours.mean()) < 4 * error


def test_invalid_input_is_refused():
    model = dp.positional_semantic()
    changes = {
        "alpha": {"alphas": [0.0]}, "scale": {"scales": [-1.0]}, "d": {"d": 20},
        "seeds": {"seeds": 0}, "steps": {"steps": 0}, "momentum": {"momentum": 1.0},
        "batch_fraction": {"batch_fraction": 0.0},
    }  # fmt: skip
    for field, change in changes.items():
        arguments = {"alphas": [1.0], "scales": [0.1], "d": 100, "steps": 5} | change
        with pytest.raises(dp.InvalidInput, match=f"{field} = "):
            dp.analysis.outcomes(model, **arguments)
    with pytest.raises(dp.InvalidInput, match=r"scale = .*use scales"):
        dp.analysis.outcomes(model, [1.0], [0.1], 100, scale=0.5)
