"""Training on rows of a table."""

from __future__ import annotations

import numpy as np

import dotphase as dp


def test_training_on_a_table(paper, rng):
    scale = np.linspace(0.2, 2.0, 20)
    rows = 1.0 + (scale * rng.standard_t(8, (600, 20))) @ rng.standard_normal((20, 20))
    runs = dp.analysis.train_on_table(
        paper, dp.embeddings.prepare_table(rows), [2.0, 4.0], seeds=2, held_out=256
    )
    assert runs.sizes == {"alpha": 2, "seed": 2, "start": 2}
    assert bool(runs["converged"].all())
    assert float(runs["theta"].sel(start="semantic").mean()) > 0.05
    # More sentences, a larger sum of losses; and the best weights of one start may be those
    # of the other, but each has learned.
    loss = runs["train_loss"].mean("seed")
    assert bool((loss.sel(alpha=4.0) > loss.sel(alpha=2.0)).all())
    assert bool((runs["test_error"] > 0).all())
