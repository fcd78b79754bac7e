from __future__ import annotations

import numpy as np
import pytest

import dotphase as dp
from dotphase.experiments.grid import experiment

GRID = {"alphas": [1.9, 2.0], "omegas": [0.3, 0.5], "d": 24, "seeds": 1, "batch": 2}


def test_padding_batches_and_stopping_change_nothing(tmp_path):
    out = tmp_path / "grid.npz"
    seen = []

    def stop(done: int, total: int) -> None:
        seen.append((done, total))
        if len(seen) == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        experiment(**GRID, out=out, progress=stop)
    dataset = experiment(**GRID, out=out, progress=stop)
    assert seen == [(2, 4), (4, 4)]
    assert dataset.sizes == {"alpha": 2, "omega": 2, "seed": 1, "start": 2}
    assert bool(dataset["converged"].all())
    assert np.all(dataset["gradient_norm"] / np.sqrt(24) <= 1e-6)
    assert float(dataset["train_loss"].sel(alpha=1.9, omega=0.3, start="semantic").item()) > 0
    with pytest.raises(dp.InvalidInput, match="other settings"):
        experiment(**{**GRID, "omegas": [0.1]}, out=out)
