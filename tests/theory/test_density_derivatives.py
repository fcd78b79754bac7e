"""Derivatives of the averages in score form, for a linear student."""

import numpy as np

from dotphase.numerics.statistics import error_of_mean
from dotphase.theory.coordinates import Coordinates
from dotphase.theory.expectations import evaluator_of
from dotphase.theory.overlaps import Overlaps
from models import ridge_regression

Q, V, THETA = 0.5, 3.0, 0.4


def test_slopes_are_derivatives_of_the_conjugates():
    """``qhat/alpha = (1 - 2 theta + q)/(1 + V)^2``; Vhat and thetahat do not depend on q, theta."""
    model = ridge_regression()
    evaluator = evaluator_of(model)
    q, v, theta = (np.full((1, 1, 1), value) for value in (Q, V, THETA))
    overlaps = Overlaps(q, np.zeros((1, 1)), v, theta)
    states = evaluator.expectations(overlaps, 16, 0).prox_states
    slopes = evaluator.responses(overlaps, 16, 0, states).slopes
    parts = Coordinates.of(model).part
    names = ["q" if parts("q")[index] else "theta" for index in np.flatnonzero(~parts("V"))]
    expected = {"q": 1 / (1 + V) ** 2, "theta": -2 / (1 + V) ** 2}
    for index, name in enumerate(names):
        for conjugate in ("qhat", "Vhat", "thetahat"):
            values = np.ravel(getattr(slopes, conjugate)[:, index])
            error = error_of_mean(values)
            exact = expected[name] if conjugate == "qhat" else 0.0
            assert error < 0.01
            assert abs(values.mean() - exact) < 5 * error, (conjugate, name)
