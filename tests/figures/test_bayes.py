import numpy as np

import dotphase as dp
import made_up


def test_all_lines_are_drawn():
    curve = made_up.curve()
    axis = dp.plot.bayes(curve, made_up.bayes()).axes[0]
    labels = {line.get_label(): line.get_ydata() for line in axis.lines}
    np.testing.assert_array_equal(labels["Bayes-optimal"], [0.002, 0.001, 0.0])
    semantic = curve["test_error"].sel(branch="semantic").where(curve["alpha"] > 0.5)
    np.testing.assert_array_equal(labels["attention, semantic minimum"], semantic)
    assert "linear positional layer" in labels and "theory not trusted" in labels
