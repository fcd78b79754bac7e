from __future__ import annotations

import numpy as np
import pytest

import dotphase as dp
from models import three_tokens

GRID = {"alphas": [1.5, 2.0], "values": [0.3, 0.5], "d": 24, "seeds": 1, "runs_per_batch": 2}


def paper_at(omega: float) -> dp.Model:
    return dp.positional_semantic(omega=omega)


@pytest.fixture(scope="module")
def whole():
    return dp.grid(paper_at, **GRID)


def test_every_cell_is_trained_from_every_start(whole):
    assert whole.sizes == {"alpha": 2, "omega": 2, "seed": 1, "start": 2}
    assert bool(whole["converged"].all())
    assert np.all(whole["gradient_norm"] / np.sqrt(24) <= 1e-6)
    # What the members have in common is told, what they do not is left out.
    assert whole.attrs["ridge"] == 0.01 and whole.attrs["d"] == 24
    assert "teacher" not in whole.attrs
    linear = [dp.analysis.linear_test_error(paper_at(omega)) for omega in GRID["values"]]
    np.testing.assert_allclose(whole["linear_test_error"], linear)


def test_what_was_stopped_goes_on(whole, tmp_path):
    out, seen = tmp_path / "grid.npz", []

    def stop(done: int, total: int) -> None:
        seen.append((done, total))
        if len(seen) == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        dp.grid(paper_at, **GRID, out=out, progress=stop)
    parts = dp.grid(paper_at, **GRID, out=out, progress=stop)
    assert seen == [(done, 4) for done in (1, 2, 3, 4)]
    for name in ("train_loss", "test_error", "m", "theta", "q"):
        np.testing.assert_array_equal(parts[name], whole[name])
    with pytest.raises(dp.InvalidInput, match="another configuration"):
        dp.grid(paper_at, **{**GRID, "values": [0.1]}, out=out)


def test_lanes_that_are_filled_again_change_nothing(whole):
    """Four cells in two lanes, and one after the other."""
    alone = dp.grid(paper_at, **{**GRID, "runs_per_batch": 1})
    np.testing.assert_array_equal(alone["iterations"], whole["iterations"])
    for name in ("train_loss", "test_error", "m", "theta", "q"):
        np.testing.assert_allclose(alone[name], whole[name], rtol=1e-6)


def test_padding_and_company_change_nothing():
    """36 sentences alone, and with 12 more that do not count beside a cell in which they do."""
    asked = {"values": [0.3], "d": 24, "seeds": 1, "optimizer": "gd"}
    alone, both = (dp.grid(paper_at, alphas, **asked) for alphas in ([1.5], [1.5, 2.0]))
    for name in ("train_loss", "theta", "m", "iterations"):
        np.testing.assert_allclose(alone[name].values[0], both[name].values[0], rtol=1e-7)


def test_any_parameter_of_any_model():
    """Positions that differ from member to member, three tokens."""

    def family(ridge: float) -> dp.Model:
        model = three_tokens()
        positions = (1 + ridge) * np.asarray(model.positions)
        return dp.Model(model.teacher, model.student, 3, sigma=[0.5, 0.6, 0.4],
                        positions=positions, ridge=ridge)  # fmt: skip

    found = dp.grid(family, [2.0], [0.01, 0.1], 20, parameter="ridge", starts=["random"], seeds=1,
                    optimizer="gd")  # fmt: skip
    assert found["train_loss"].dims == ("alpha", "ridge", "seed", "start")
    # A stronger ridge makes smaller weights.
    assert float(found["q"].sel(ridge=0.1).squeeze()) < float(found["q"].sel(ridge=0.01).squeeze())

    def changing(rank: float) -> dp.Model:
        return dp.positional_semantic(student_rank=int(rank))

    with pytest.raises(dp.InvalidInput, match="only numbers may differ"):
        dp.grid(changing, [1.0], [1, 2], 20)
