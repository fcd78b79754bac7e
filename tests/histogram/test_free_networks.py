"""Free networks on few and on more sequences."""

import numpy as np
import pytest

from dotphase import histogram
from dotphase.errors import InvalidInput
from result_checks import assert_is_a_result

SMALL = {"task": histogram.Task(symbols=3, length=4, samples=300), "dimension": 16, "hidden": 64,
         "batch_size": 4}  # fmt: skip


def test_free_networks_learn(tmp_path):
    events = []
    result = histogram.emergence([40], 2, steps=1000, progress=events.append, **SMALL)
    assert [(event.done, event.total) for event in events] == [(1, 1)]
    assert result.samples.tolist() == [40]
    assert result.accuracy.shape == result.semantic_score.shape == (1, 2)
    counts = histogram.draw(SMALL["task"]).held_out_counts
    constant = np.bincount(counts.ravel()).max() / counts.size
    assert result.accuracy.min() > constant + 0.1
    assert "free networks" in str(result)
    assert_is_a_result(result, tmp_path)


@pytest.mark.parametrize("samples", [[], [0], [10_000]])
def test_bad_sizes(samples):
    with pytest.raises(InvalidInput, match="samples"):
        histogram.emergence(samples, 1, steps=10, **SMALL)
