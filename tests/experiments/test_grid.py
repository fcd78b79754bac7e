from __future__ import annotations

import numpy as np
import pytest

import dotphase as dp
from models import three_tokens

GRID = {"alphas": [1.5, 2.0], "values": [0.3, 0.5], "d": 24, "seeds": 1, "runs_per_batch": 2}


def paper_at(omega: float) -> dp.Model:
    return dp.positional_semantic(omega=omega)


@pytest.fixture(scope="module")
def runs():
    return dp.grid(paper_at, **GRID)


def test_every_cell_is_trained_from_every_start(runs):
    assert runs.sizes == {"alpha": 2, "omega": 2, "seed": 1, "start": 2}
    assert bool(runs["converged"].all())
    assert np.all(runs["gradient_norm"] / np.sqrt(24) <= 1e-6)
    # Attributes are those that all members share.
    assert runs.attrs["ridge"] == 0.01 and runs.attrs["d"] == 24
    assert "teacher" not in runs.attrs
    linear = [dp.analysis.linear_test_error(paper_at(omega)) for omega in GRID["values"]]
    np.testing.assert_allclose(runs["linear_test_error"], linear)


def test_an_interrupted_grid_resumes(runs, tmp_path):
    out, seen = tmp_path / "grid.npz", []

    def stop(event) -> None:
        seen.append((event.done, event.total))
        if len(seen) == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        dp.grid(paper_at, **GRID, out=out, progress=stop)
    resumed = dp.grid(paper_at, **GRID, out=out, progress=stop)
    assert seen == [(done, 4) for done in (1, 2, 3, 4)]
    for name in ("train_loss", "test_error", "m", "theta", "q"):
        np.testing.assert_array_equal(resumed[name], runs[name])
    with pytest.raises(dp.InvalidInput, match="another configuration"):
        dp.grid(paper_at, **{**GRID, "values": [0.1]}, out=out)


def test_the_number_of_slots_changes_nothing(runs):
    """Four cells in two slots, and one after the other."""
    alone = dp.grid(paper_at, **{**GRID, "runs_per_batch": 1})
    np.testing.assert_array_equal(alone["iterations"], runs["iterations"])
    for name in ("train_loss", "test_error", "m", "theta", "q"):
        np.testing.assert_allclose(alone[name], runs[name], rtol=1e-6)


def test_padding_changes_nothing():
    """36 sentences alone, and padded by 12 next to a cell with 48."""
    options = {"values": [0.3], "d": 24, "seeds": 1, "optimizer": "gd"}
    alone, both = (dp.grid(paper_at, alphas, **options) for alphas in ([1.5], [1.5, 2.0]))
    for name in ("train_loss", "theta", "m", "iterations"):
        np.testing.assert_allclose(alone[name].values[0], both[name].values[0], rtol=1e-7)


def test_any_parameter_of_any_model():
    """Positions that differ from member to member, three tokens."""

    def family(ridge: float) -> dp.Model:
        model = three_tokens()
        positions = (1 + ridge) * np.asarray(model.positions)
        return dp.Model(model.teacher, model.student, 3, sigma=[0.5, 0.6, 0.4],
                        positions=positions, ridge=ridge)  # fmt: skip

    grid = dp.grid(family, [2.0], [0.01, 0.1], 20, "ridge", starts=["random"], seeds=1,
                    optimizer="gd")  # fmt: skip
    assert grid["train_loss"].dims == ("alpha", "ridge", "seed", "start")
    # A stronger ridge makes smaller weights.
    assert float(grid["q"].sel(ridge=0.1).squeeze()) < float(grid["q"].sel(ridge=0.01).squeeze())

    def changing(rank: float) -> dp.Model:
        return dp.positional_semantic(student_rank=int(rank))

    with pytest.raises(dp.InvalidInput, match="only numbers may differ"):
        dp.grid(changing, [1.0], [1, 2], 20)


def test_settings_are_those_of_training():
    small = {"alphas": [2.0], "values": [0.3], "d": 20, "seeds": 1}
    settings = dp.TrainingSettings(optimizer="gd", steps=3, lr=0.1, seed=5)
    one, other = dp.grid(paper_at, **small, settings=settings), dp.grid(
        paper_at, **small, optimizer="gd", steps=3, lr=0.1, seed=5)  # fmt: skip
    assert one["iterations"].values.ravel().tolist() == [3, 3]
    np.testing.assert_array_equal(one["train_loss"], other["train_loss"])
    assert {name: one.attrs[name] for name in ("optimizer", "steps", "lr", "seed")} == {
        "optimizer": "gd", "steps": 3, "lr": 0.1, "seed": 5}  # fmt: skip
    with pytest.raises(dp.InvalidInput, match="dtype = 'float32': must be float64"):
        dp.grid(paper_at, **small, dtype="float32")
    with pytest.raises(TypeError, match="unknown keyword 'batch'"):
        dp.grid(paper_at, **small, batch=3)
