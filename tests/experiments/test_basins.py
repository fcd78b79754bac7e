"""Basins: the same data at every scale, shares with errors, and the report items on top."""

from __future__ import annotations

import jax
import numpy as np
import pytest
import xarray as xr

import dotphase as dp
from dotphase.finite.begin import resolve
from dotphase.finite.overlaps import MECHANISMS
from dotphase.finite.prepare import prepare
from dotphase.report.items import bayes, dynamics, limits
from dotphase.report.store import Parts
from dotphase.training.kernel import objective

D, ALPHAS, SCALES = 40, [1.0, 4.0], [0.01, 1.0]


@pytest.fixture(scope="module")
def found(paper):
    return dp.basins(paper, ALPHAS, SCALES, D, optimizers=["gd"], seeds=3, steps={"gd": 2500})


def test_descent_arrives_and_says_where(found):
    assert found["mechanism"].dims == ("optimizer", "alpha", "seed", "scale")
    gd = found.sel(optimizer="gd")
    arrived = (gd["outcome"] == 1).values
    assert np.all(gd["gradient_norm"].values[arrived] <= 1e-5 * np.sqrt(D))
    assert arrived.mean() > 0.7
    assert set(found["mechanism"].values.ravel()) <= {*MECHANISMS, "diverged"}
    # Large starts and many sentences: the semantic minimum, as the population flow says.
    assert np.all(gd["mechanism"].sel(alpha=4.0, scale=1.0) == "semantic")


def test_padding_changes_no_mini_batch(paper):
    """The same sentences are chosen, with the same weights, by the same key."""
    data = dp.sample(paper, 10, 30, 0)
    few = data._replace(tokens=data.tokens[:12])
    key, weights = jax.random.key(1), np.full((10, 1), 0.3)

    @jax.jit
    def both(data, few):
        sets = prepare(paper, few), prepare(paper, data, 12)
        return [objective(paper, each.reduced, 5).estimate(weights, key) for each in sets]

    (value, gradient), (other, others) = both(data, few)
    assert value == pytest.approx(float(other), rel=1e-12)
    np.testing.assert_allclose(gradient, others, rtol=1e-9, atol=1e-15)


def test_shares_have_errors_even_where_all_agree():
    kinds = np.array([["semantic"] * 4, ["semantic", "positional"] * 2])
    shares = dp.analysis.basin_shares(xr.Dataset({"mechanism": (("alpha", "seed"), kinds)}))
    semantic = shares.sel(found="semantic")
    np.testing.assert_allclose(semantic["share"], [1.0, 0.5])
    np.testing.assert_allclose(semantic["stderr"], np.sqrt([5 / 36 / 7, 1 / 4 / 7]))


def test_a_scale_scales_the_start(paper):
    arguments = jax.random.key(0), np.zeros((30, 1)), np.zeros((2, 30))
    small, large = (np.asarray(resolve(paper, "random", s)(*arguments)) for s in (0.2, 1.0))
    np.testing.assert_allclose(small, 0.2 * large)
    usual = np.asarray(resolve(paper, "random")(*arguments))
    np.testing.assert_allclose(usual, 0.1 * large)
    with pytest.raises(dp.InvalidInput, match="scale"):
        resolve(paper, "random", 0.0)
    with pytest.raises(dp.InvalidInput, match="scale"):
        dp.train(paper, 1.0, 20, seeds=1, start=lambda *a: a[1], scale=0.3)


def test_dynamics_is_drawn_and_told(found, tmp_path):
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
    assert {row.verdict for row in dynamics.compare(datasets)} == {"agrees"}
    worse = datasets | {"runs-descent": runs * 1.2}
    worse["runs-descent"].attrs["alpha"] = 20.0
    assert {row.verdict for row in dynamics.compare(worse)} == {"differs"}
    assert len(dynamics.remarks(datasets)) == 5
    drawn = dynamics.draw(datasets)
    assert len(drawn["flow"].axes) == 3 and drawn[""].axes


def test_bayes_and_limits_agree(tmp_path):
    sizes = {"alphas": [1.5], "rtol": 1e-1, "most": 12, "lines": [0.3, 0.45], "samples": 20_000}
    datasets = bayes.compute(Parts(tmp_path / "bayes"), sizes)
    rows = bayes.compare(datasets)
    assert [row.verdict for row in rows] == ["agrees"] * 4
    assert rows[1].ours == pytest.approx(0.786, abs=1e-3)
    assert bayes.draw(datasets).axes and len(bayes.remarks(datasets)) == 2
    sizes = {"alphas": [1.0, 2.0], "ridges": [0.01], "points": 14, "paper_points": 13}
    datasets = limits.compute(Parts(tmp_path / "limits"), sizes)
    assert {row.verdict for row in limits.compare(datasets)} == {"agrees"}
    assert len(limits.draw(datasets).axes) == 2
    assert "closed form is 100" in limits.remarks(datasets)[0]
