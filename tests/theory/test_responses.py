"""Responses of the proximal map, for a linear student."""

import numpy as np
import pytest

from dotphase.runtime.precision import in_double_precision
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
