"""The estimate of the error of replica symmetry."""

import numpy as np
import pytest

from dotphase.theory.branches import BRANCHES
from dotphase.theory.expectations import evaluator_of
from dotphase.theory.model_error import (
    LAWS,
    explained_variance,
    model_errors,
    relative_errors,
    stiffness_lost,
)
from dotphase.theory.overlaps import Overlaps
from models import ridge_regression


def test_changes_grow_with_the_jumps_up_to_one():
    changes = [relative_errors(jumps, 0.5) for jumps in np.geomspace(1e-3, 10, 20)]
    for name in LAWS:
        values = [change[name] for change in changes]
        assert np.all(np.diff(values) >= 0) and values[0] < 1e-4 and values[-1] == 1
    assert set(relative_errors(0.0, 0.5).values()) == {0.0}


def test_an_aligned_student_is_explained_by_the_teacher(paper):
    overlaps, rho = BRANCHES["semantic"].initial_overlaps(paper), float(paper.rho[0])
    aligned = overlaps._replace(theta=np.sqrt(overlaps.q * rho))
    assert explained_variance(paper, aligned) == pytest.approx(1)
    assert explained_variance(paper, overlaps._replace(theta=0 * overlaps.theta)) == 0


def test_a_linear_student_loses_no_stiffness():
    evaluator = evaluator_of(ridge_regression())
    q, V, theta = (np.full((1, 1, 1), value) for value in (0.5, 3.0, 0.4))
    overlaps = Overlaps(q, np.zeros((1, 1)), V, theta)
    expectations = evaluator.expectations(overlaps, 16, 0)
    responses = evaluator.responses(overlaps, 16, 0, expectations.prox_states)
    # What remains is the quadrature error of the response by parts.
    assert stiffness_lost(evaluator.model, 1.7, overlaps, expectations.mean, responses) < 2e-3


def test_absolute_changes_are_shares_of_the_values(paper):
    overlaps = BRANCHES["semantic"].initial_overlaps(paper)
    errors = model_errors(overlaps, 2.0, -3.0, dict.fromkeys(LAWS, 0.1))
    assert errors["train_loss"] == pytest.approx(0.2) and errors["test_error"] == pytest.approx(0.3)
    assert errors["theta"] == pytest.approx(0.1 * overlaps.theta[0, 0, 0]) and errors["m"] == 0
