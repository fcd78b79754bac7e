"""Baselines that attention is measured against, all through `baseline`."""

from dotphase.baselines.linear import linear_layer as linear_layer
from dotphase.baselines.linear import linear_test_error as linear_test_error
