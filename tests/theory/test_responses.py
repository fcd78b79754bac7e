"""Responses of the proximal map, and derivatives of the averages, for a linear student."""

import numpy as np
import pytest

from dotphase.numerics.statistics import error_of_mean
from dotphase.runtime.precision import in_double_precision
from dotphase.theory.coordinates import Coordinates
from dotphase.theory.expectations import evaluator_of
from dotphase.theory.overlaps import Overlaps
from models import ridge_regression

Q, V, THETA = 0.5, 3.0, 0.4


@pytest.fixture(scope="module")
@in_double_precision
def responses():
    """The force is ``g = (h* - omega)/(1 + V)``."""
    evaluator = evaluator_of(ridge_regression())
    q, v, theta = (np.full((1, 1, 1), value) for value in (Q, V, THETA))
    overlaps = Overlaps(q, np.zeros((1, 1)), v, theta)
    states = evaluator.expectations(overlaps, 16, 0).prox_states
    return evaluator.responses(overlaps, 16, 0, states)


def test_the_response_of_a_linear_student_is_constant(responses):
    np.testing.assert_allclose(responses.jacobian, -1 / (1 + V), rtol=1e-6)
    np.testing.assert_allclose(responses.squared, 1 / (1 + V) ** 2, rtol=1e-6)


def test_slopes_are_derivatives_of_the_conjugates(responses):
    """``qhat/alpha = (1 - 2 theta + q)/(1 + V)^2``; Vhat and thetahat do not depend on q, theta."""
    parts = Coordinates.of(ridge_regression()).part
    names = ["q" if parts("q")[index] else "theta" for index in np.flatnonzero(~parts("V"))]
    expected = {"q": 1 / (1 + V) ** 2, "theta": -2 / (1 + V) ** 2}
    for index, name in enumerate(names):
        for conjugate in ("qhat", "Vhat", "thetahat"):
            values = np.ravel(getattr(responses.slopes, conjugate)[:, index])
            error = error_of_mean(values)
            exact = expected[name] if conjugate == "qhat" else 0.0
            assert error < 1e-3
            assert abs(values.mean() - exact) < 5 * error, (conjugate, name)
