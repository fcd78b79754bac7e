"""Step sizes: numbers, lists and functions."""

import numpy as np
import pytest

import dotphase as dp
from dotphase.config.step_sizes import step_sizes


def test_step_sizes():
    np.testing.assert_array_equal(step_sizes(2, 3), [2.0, 2.0, 2.0])
    np.testing.assert_array_equal(step_sizes(lambda step: 1 / (1 + step), 2), [1.0, 0.5])


@pytest.mark.parametrize(
    ("lr", "message"),
    [
        (0.0, "function of the step that gives them$"),
        ([1.0, 2.0], "the shape is 2$"),
        (lambda step: 1.0 - step / 2, "step 2 has 0$"),
        ([1.0, float("nan"), 1.0], "step 1 has nan$"),
        ("fast", "must be a number > 0, 3 of them"),
        (True, "must be a number > 0"),
    ],
)
def test_bad_step_sizes_are_named(lr, message):
    with pytest.raises(dp.InvalidInput, match=message):
        step_sizes(lr, 3)
