"""Diagnose a run in finite dimension whose numbers are not finite."""

import numpy as np

from dotphase.finite_d.loss import Weights, project
from dotphase.finite_d.preparation import Prepared
from dotphase.finite_d.test_error import teacher_and_student_fields
from dotphase.model.definition import Model
from dotphase.model.nonfinite import diagnose_functions, unknown_cause
from dotphase.numerics.quadrature import Rule


def diagnose_run(model: Model, data: Prepared, weights: Weights, rule: Rule) -> str:
    """Name the function that is not finite, and the fields of the run at which it is not."""
    if not np.isfinite(np.asarray(weights)).all():
        return "the weights are not finite"
    reduced, teacher_weights, positions, _ = data
    test_h, test_omega, _ = teacher_and_student_fields(
        model, weights, teacher_weights, positions, rule
    )
    train_h = project(reduced.z - positions, teacher_weights)
    train_omega = project(reduced.z, weights)
    diagnosis = diagnose_functions(model, [train_h, test_h], [train_omega, test_omega])
    return diagnosis or unknown_cause(model)
