"""Free networks on few and on more sequences."""

import numpy as np
import pytest

from dotphase import histogram
from dotphase.errors import InvalidInput

SMALL = {"task": histogram.Task(symbols=3, length=4, samples=300), "dimension": 8, "hidden": 16}


def test_more_sequences_generalise_better(tmp_path):
    sizes = []
    found = histogram.emergence([3, 40], 2, 300, **SMALL, on_size=sizes.append)
    assert sizes == [3, 40] == found.samples.tolist()
    assert found.accuracy.shape == (2, 2)
    assert found.accuracy[1].min() > found.accuracy[0].max()
    assert found.train_loss[0].max() < 0.5  # the few are learned by heart
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
