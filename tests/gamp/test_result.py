"""`MessagePassing` as a result."""

from __future__ import annotations

import dotphase as dp
from result_checks import assert_is_a_result


def test_message_passing_is_a_result(paper, tmp_path):
    result = dp.amp(paper, 2.0, 40, seeds=2, iterations=3, held_out=100)
    assert_is_a_result(result, tmp_path)
    iterations = result.dataset()["theta_predicted"]
    assert iterations.dims == ("iteration",) and iterations.sizes["iteration"] == 4
