import numpy as np

import dotphase as dp
import made_up
from dotphase.figures.parts.lines import THIN_LINE


def test_all_lines_are_drawn():
    curve = made_up.curve()
    axis = dp.plot.bayes(curve, made_up.bayes()).axes[0]
    labels = {line.get_label(): line.get_ydata() for line in axis.lines}
    np.testing.assert_array_equal(labels["Bayes-optimal"], [0.002, 0.001, 0.0])
    trusted = curve["test_error"].sel(branch="semantic").where(curve["alpha"] > 1.0)
    np.testing.assert_array_equal(labels["attention, semantic minimum"], trusted)
    assert "linear positional layer" in labels and "theory not trusted" in labels


def test_lines_are_thin_where_the_theory_is_not_trusted():
    """Up to the first point that is, and no further."""
    axis = dp.plot.bayes(made_up.curve(), made_up.bayes()).axes[0]
    thin = [line for line in axis.lines if line.get_linewidth() == THIN_LINE]
    (shown,) = [line.get_ydata() for line in thin if np.isfinite(line.get_ydata()).any()]
    np.testing.assert_array_equal(np.isfinite(shown), [False, True, True, False])
