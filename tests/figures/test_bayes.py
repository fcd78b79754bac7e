import numpy as np
import xarray as xr

import dotphase as dp


def test_all_lines_are_drawn(tmp_path):
    """Made-up numbers: drawing needs no solving."""
    alpha = np.array([0.5, 1.0, 1.5])
    dims = ("branch", "alpha")
    curve = xr.Dataset(
        {
            "test_error": (dims, [[0.004, 0.003, 0.002], [0.0035, 0.0032, 0.0033]]),
            "on_branch": (dims, [[False, True, True], [True] * 3]),
            "trusted": (dims, [[False, False, True], [True] * 3]),
            "linear_test_error": 0.002,
        },
        coords={"branch": ["semantic", "positional"], "alpha": alpha},
    )
    bayes = xr.Dataset(
        {
            "test_error": ("alpha", [0.002, 0.001, 0.0]),
            "weak_recovery_alpha": 1 / 6,
            "exact_recovery_alpha": 0.5,
        },
        coords={"alpha": [0.1, 0.4, 0.5]},
    )
    path = tmp_path / "bayes.png"
    figure = dp.plot_bayes(curve, bayes, path)
    assert path.stat().st_size > 5000
    axis = figure.axes[0]
    labels = {line.get_label(): line.get_ydata() for line in axis.lines}
    np.testing.assert_array_equal(labels["Bayes-optimal"], [0.002, 0.001, 0.0])
    np.testing.assert_array_equal(labels["attention, semantic minimum"], [np.nan, 0.003, 0.002])
    assert "linear positional layer" in labels and "theory not trusted" in labels
