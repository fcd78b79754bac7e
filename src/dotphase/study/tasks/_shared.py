"""Parameters and results that several tasks share."""

from dotphase.config.parameters import Choice, Integer, Log2, Number, Parameter
from dotphase.study.tasks import Result

ALPHA = Parameter("alpha", Number(above=0), help="Sentences per dimension n/d.")
DIMENSION = Parameter("d", Integer(2), help="Dimension of a token.")
START = Parameter(
    "start", Choice("dotphase.finite_d.initializers:INITIALIZERS"), "semantic", "Initial weights."
)
SCALE = Parameter(
    "scale", Number(above=0), None, "Standard deviation of a random start's entries [default: 0.1]."
)
DIMENSION_OR_LIMIT = Parameter("d", Integer(2), None, "Dimension of a token [default: infinite].")
HELD_OUT = Parameter("held_out", Integer(2), 1024, "Sentences for the sampled test error.")
TEACHER_NORM = Parameter(
    "teacher_norm", Choice(("fixed", "random")), "fixed",
    "Norm of the teacher: exactly sqrt(d), or that of normal entries.",
)  # fmt: skip

#: log2 of a number of Gaussian points.
LOG2 = Log2(12, 24)

LOSSES = {
    "train_loss": Result(float, "training loss per dimension, eps_t"),
    "test_error": Result(float, "test error, eps_g"),
}
LINEAR = {"linear_test_error": Result(float, "test error of the linear layer")}

#: Results of a student at finite dimension.
RUN = {
    **LOSSES,
    "test_error_sampled": Result(float, "test error on held-out sentences"),
    "test_error_sampled_stderr": Result(float, "standard error over held-out sentences"),
    "q": Result(float, "sigma_1^2 |Q^T Q|/d"),
    "m": Result(float, "|Q^T p_1|/sqrt d"),
    "theta": Result(float, "sigma_1^2 |Q^T Q*|/d"),
    **LINEAR,
    "gradient_norm": Result(float, "norm of the gradient of the training loss"),
    "semantic_alignment": Result(float, "|Q^T Q*|/(|Q| |Q*|)"),
    "mechanism": Result(str, "what the student has learned"),
    "converged": Result(bool, "whether the gradient is below the tolerance"),
    "outcome": Result(str, "why the run stopped"),
    "iterations": Result(int, "steps taken"),
}
