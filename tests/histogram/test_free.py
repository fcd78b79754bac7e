"""Free networks on few and on more sequences."""

import numpy as np
import pytest

from dotphase import histogram
from dotphase.errors import InvalidInput

SMALL = {"task": histogram.Task(symbols=3, length=4, samples=300), "dimension": 16, "hidden": 64,
         "batch": 4}  # fmt: skip


def test_free_networks_learn(tmp_path):
    sizes = []
    found = histogram.emergence([40], 2, 1000, **SMALL, on_size=sizes.append)
    assert sizes == [40] == found.samples.tolist()
    assert found.accuracy.shape == found.semantic_score.shape == (1, 2)
    counts = histogram.draw(SMALL["task"]).held_out_counts
    constant = np.bincount(counts.ravel()).max() / counts.size
    assert found.accuracy.min() > constant + 0.1
    assert "free networks" in str(found)
    again = histogram.load_emergence(found.save(tmp_path / "found.npz"))
    assert again.to_dict() == found.to_dict() and again.task == found.task
    np.savez(tmp_path / "other.npz", a=1)
    with pytest.raises(InvalidInput, match="emergence"):
        histogram.load_emergence(tmp_path / "other.npz")


@pytest.mark.parametrize("samples", [[], [0], [10_000]])
def test_bad_sizes(samples):
    with pytest.raises(InvalidInput, match="samples"):
        histogram.emergence(samples, 1, 10, **SMALL)
