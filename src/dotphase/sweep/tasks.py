"""What a point of a study computes: named parameters and a seed in, named results out.

An engine is one function, the parameters it takes and the results it gives. A new one is
such a function and one line in `ENGINES`; validation, sweeps, the journal and the dataset
follow from the tables. Points know nothing of each other, so that a study does not depend
on the order in which they are computed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dotphase._numerics import validate
from dotphase.errors import InvalidInput

Values = dict[str, Any]
Check = Callable[[str, Any], Any]


class _Required:
    def __repr__(self) -> str:
        return "required"


#: Stands for the default of a parameter that has none.
REQUIRED = _Required()


@dataclass(frozen=True)
class Parameter:
    """A parameter of an engine.

    Attributes
    ----------
    check : function of (field, value) that returns the value as JSON can hold it, or refuses
    default : value if it is not given; `REQUIRED` if it must be
    """

    check: Check
    default: Any = REQUIRED


@dataclass(frozen=True)
class Result:
    """A result of an engine: float, int, bool or str, and what it means."""

    kind: type
    description: str


@dataclass(frozen=True)
class Engine:
    """What can be computed at a point.

    Attributes
    ----------
    compute : function of (parameters, seed) that returns every one of `results`
    parameters, results : by name
    """

    compute: Callable[[Mapping[str, Any], int], Values]
    parameters: Mapping[str, Parameter]
    results: Mapping[str, Result]


@dataclass(frozen=True)
class PointResult:
    """What became of a point: its values, or the reason why there are none.

    Attributes
    ----------
    index : place of the point in the grid
    values, reason : one of them is None
    seconds : time it took
    """

    index: int
    values: Values | None
    reason: str | None
    seconds: float


def compute_point(engine: str, index: int, parameters: Mapping[str, Any], seed: int) -> PointResult:
    """Compute one point; whatever it raises becomes the reason of its failure."""
    began = time.perf_counter()
    try:
        chosen = ENGINES[engine]
        found = chosen.compute(parameters, seed)
        values = {name: result.kind(found[name]) for name, result in chosen.results.items()}
    except Exception as error:
        return PointResult(index, None, reason_of(error), time.perf_counter() - began)
    return PointResult(index, values, None, time.perf_counter() - began)


def reason_of(error: BaseException) -> str:
    """An exception in one line."""
    text = " ".join(str(error).split())
    if isinstance(error, InvalidInput):
        return text
    return f"{type(error).__name__}: {text}"[:500] if text else type(error).__name__


# The engines themselves; what they need is imported when a point is computed, so that the
# process that only hands out the points stays small.


def _model(parameters: Mapping[str, Any]) -> Any:
    from dotphase.experiments.family import named_model

    chosen = {name: parameters[name] for name in MODEL if name not in SHAPE}
    if parameters["exponent"] == 0:
        return named_model(**chosen)
    from dotphase.model.spectrum import power_law

    return named_model(**chosen, spectrum=power_law(**{n: parameters[n] for n in SHAPE}))


def _rest(parameters: Mapping[str, Any], *but: str) -> dict[str, Any]:
    """The parameters that are not the model's, nor those named."""
    left = {name: value for name, value in parameters.items() if name not in MODEL}
    return {name: value for name, value in left.items() if name not in but}


def theory(parameters: Mapping[str, Any], seed: int) -> Values:
    """One branch of state evolution at one alpha, as `dotphase solve`."""
    from dotphase.theory.solve import solve

    solution = solve(
        _model(parameters),
        parameters["alpha"],
        parameters["branch"],
        seed=seed,
        **_rest(parameters, "alpha", "branch"),
    )
    numbers = solution.norms | {
        "train_loss": solution.train_loss,
        "test_error": solution.test_error,
    }
    return {
        **numbers,
        **{f"{name}_stderr": solution.stderr[name] for name in numbers},
        "linear_test_error": solution.linear_test_error,
        "found": solution.found,
        "on_branch": solution.on_branch and solution.converged,
        "converged": solution.converged,
        "trusted": solution.stability.trusted,
        "replicon": solution.stability.replicon,
        "jump_weight": solution.stability.jump_weight,
        "residual": solution.residual,
        "iterations": solution.iterations,
        "log2_points": solution.log2_points,
    }


def train(parameters: Mapping[str, Any], seed: int) -> Values:
    """One student trained at finite dimension, as `dotphase train --seeds 1`."""
    from dotphase.training.run import train as train_runs

    run = train_runs(_model(parameters), seeds=1, batch=1, seed=seed, **_rest(parameters)).runs[0]
    return run.to_dict()


def amp(parameters: Mapping[str, Any], seed: int) -> Values:
    """One run of message passing, as `dotphase amp --seeds 1`."""
    from dotphase.experiments.message_passing import amp as amp_runs

    run = amp_runs(_model(parameters), seeds=1, seed=seed, **_rest(parameters)).runs[0]
    return run.to_dict()


def critical(parameters: Mapping[str, Any], seed: int) -> Values:
    """Where the branches cross and where attention beats the linear layer."""
    from dotphase.theory.critical import critical as critical_point

    return critical_point(_model(parameters), seed=seed, **_rest(parameters)).to_dict()


def bayes(parameters: Mapping[str, Any], seed: int) -> Values:
    """What the data allow, as `dotphase.bayes_optimal`."""
    from dotphase.theory.bayes import bayes_optimal

    found = bayes_optimal(_model(parameters), parameters["alpha"], seed=seed).to_dict()
    return found | {"test_error_stderr": found["stderr"]}


def regression(parameters: Mapping[str, Any], seed: int) -> Values:
    """Ridge regression by the solver and in closed form: L = 1 and two identities as links."""
    from dotphase.model.glm import identity, ridge_regression, scalar_link
    from dotphase.theory.solve import solve

    alpha, ridge = parameters["alpha"], parameters["ridge"]
    model = scalar_link(identity, identity, ridge=ridge)
    solution = solve(model, alpha, seed=seed, log2_points=parameters["log2_points"])
    exact = ridge_regression(alpha, ridge)
    return {
        **{name: solution.value(name) for name in exact},
        **{f"{name}_stderr": solution.stderr[name] for name in exact},
        **{f"{name}_exact": value for name, value in exact.items()},
        "converged": solution.converged,
    }


# Parameters.


def number(**bounds: float) -> Check:
    """A finite number inside bounds."""

    def check(field: str, value: Any) -> float:
        if isinstance(value, str):
            raise InvalidInput(field, value, "must be a number, without quotation marks")
        return validate.number(field, value, **bounds)

    return check


def whole(at_least: int, at_most: int | None = None) -> Check:
    """A whole number inside bounds."""
    return lambda field, value: validate.whole(field, value, at_least=at_least, at_most=at_most)


def one_of(*options: str) -> Check:
    """One of some words."""
    return lambda field, value: validate.choice(field, value, options)


def _mixing(field: str, value: Any) -> Any:
    """A name, or the matrix itself: a file is read now, not on some other machine later."""
    from dotphase.model.paper import MIXING, read_mixing

    return value if isinstance(value, str) and value in MIXING else read_mixing(value).tolist()


def _yes_or_no(field: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(field, value, "must be true or false")
    return value


ALPHA = Parameter(number(above=0))
DIMENSION = Parameter(whole(2))
START = Parameter(one_of("semantic", "positional", "mixed", "random"), "semantic")

#: Spectrum of the tokens, as in `dotphase.model.spectrum.power_law`; white if the exponent is zero.
SHAPE = {
    "exponent": Parameter(number(at_least=0), 0.0),
    "atoms": Parameter(whole(1), 32),
}

MODEL = {
    "omega": Parameter(number(at_least=0, at_most=1), 0.3),
    "sigma": Parameter(number(above=0), 0.5),
    "ridge": Parameter(number(above=0), 0.01),
    "mixing": Parameter(_mixing, "standard"),
    "student_rank": Parameter(whole(1), 1),
    "length": Parameter(whole(2), 2),
    "kinds": Parameter(whole(2), 2),
    "untied": Parameter(_yes_or_no, False),
    **SHAPE,
}

THEORY = MODEL | {
    "alpha": ALPHA,
    "branch": Parameter(one_of("semantic", "positional", "uninformed", "mixed"), "semantic"),
    "rtol": Parameter(number(above=0), 2e-3),
    "log2_points": Parameter(whole(12, 24), None),
    "most": Parameter(whole(12, 24), 20),
}

TRAIN = MODEL | {
    "alpha": ALPHA,
    "d": DIMENSION,
    "start": START,
    "scale": Parameter(number(above=0), None),
    "optimizer": Parameter(one_of("lbfgs", "gd", "adam", "sgd"), "lbfgs"),
    "steps": Parameter(whole(1), None),
    "lr": Parameter(number(above=0), None),
    "tolerance": Parameter(number(above=0), None),
    "minibatch": Parameter(whole(1), 128),
    "held_out": Parameter(whole(2), 1024),
    "dtype": Parameter(one_of("float64", "float32"), "float64"),
}

AMP = MODEL | {
    "alpha": ALPHA,
    "d": DIMENSION,
    "start": START,
    "damping": Parameter(number(at_least=0, at_most=0.99), None),
    "iterations": Parameter(whole(1), 400),
    "tolerance": Parameter(number(above=0), 1e-8),
    "held_out": Parameter(whole(2), 1024),
}

CRITICAL = MODEL | {
    "smallest": Parameter(number(above=0), 0.05),
    "largest": Parameter(number(above=0), 8.0),
    "log2_points": Parameter(whole(12, 24), 17),
}

BAYES = MODEL | {"alpha": ALPHA}

REGRESSION = {
    "alpha": ALPHA,
    "ridge": MODEL["ridge"],
    "log2_points": Parameter(whole(12, 24), 15),
}

# Results.

_LOSSES = {
    "train_loss": Result(float, "training loss per dimension, eps_t"),
    "test_error": Result(float, "test error, eps_g"),
}
_THEORY_NUMBERS = {
    "q": Result(float, "norm of q of token 1"),
    "m": Result(float, "norm of m of token 1"),
    "V": Result(float, "norm of V of token 1"),
    "theta": Result(float, "norm of theta of token 1"),
    **_LOSSES,
}
_LINEAR = {"linear_test_error": Result(float, "test error of the linear layer")}

THEORY_RESULTS = {
    **_THEORY_NUMBERS,
    **{f"{name}_stderr": Result(float, "quadrature standard error") for name in _THEORY_NUMBERS},
    **_LINEAR,
    "found": Result(str, "branch that the fixed point belongs to"),
    "on_branch": Result(bool, "whether it is the branch asked for"),
    "converged": Result(bool, "whether the solver converged"),
    "trusted": Result(bool, "whether the theory can be trusted here"),
    "replicon": Result(float, "stable below 1"),
    "jump_weight": Result(float, "weight of the jumps"),
    "residual": Result(float, "undamped relative residual"),
    "iterations": Result(int, "evaluations of the map"),
    "log2_points": Result(int, "log2 of the Gaussian points"),
}

TRAIN_RESULTS = {
    **_LOSSES,
    "test_error_sampled": Result(float, "test error on held-out sentences"),
    "test_error_sampled_stderr": Result(float, "standard error over held-out sentences"),
    "q": Result(float, "sigma_1^2 |Q^T Q|/d"),
    "m": Result(float, "|Q^T p_1|/sqrt d"),
    "theta": Result(float, "sigma_1^2 |Q^T Q*|/d"),
    **_LINEAR,
    "gradient_norm": Result(float, "norm of the gradient of the training loss"),
    "semantic_alignment": Result(float, "|Q^T Q*|/(|Q| |Q*|)"),
    "mechanism": Result(str, "what the student has learned"),
    "converged": Result(bool, "whether the gradient is below the tolerance"),
    "outcome": Result(str, "why the run stopped"),
    "iterations": Result(int, "steps taken"),
}

AMP_RESULTS = TRAIN_RESULTS | {
    "overlap_with_trained": Result(float, "cosine with the weights that L-BFGS finds"),
    "trained_loss": Result(float, "training loss of those weights, per dimension"),
    "two_minima": Result(float, "share of sentences whose proximal problem has two minima"),
}

CRITICAL_RESULTS = {
    "alpha_c": Result(float, "alpha where the training losses cross"),
    "alpha_c_stderr": Result(float, "quadrature standard error"),
    "alpha_l": Result(float, "alpha where the test error passes that of the linear layer"),
    "alpha_l_stderr": Result(float, "quadrature standard error"),
    **_LINEAR,
    "trusted": Result(bool, "whether the theory can be trusted there"),
    "message": Result(str, "what was found, or why not"),
}

BAYES_RESULTS = {
    "overlap": Result(float, "M = q/sigma^2 of the Bayes-optimal estimate"),
    "test_error": Result(float, "test error of the posterior mean"),
    "test_error_stderr": Result(float, "quadrature standard error"),
    "weak_recovery": Result(bool, "whether anything is known of the teacher's weights"),
    "exact_recovery": Result(bool, "whether they are known exactly"),
    "unique": Result(bool, "whether there is no other stable fixed point"),
    "converged": Result(bool, "whether the fixed-point equation was solved"),
}

_REGRESSION_NUMBERS = ("V", "theta", "q", "test_error", "train_loss")
REGRESSION_RESULTS = {
    **{name: Result(float, "by the solver") for name in _REGRESSION_NUMBERS},
    **{
        f"{name}_stderr": Result(float, "quadrature standard error") for name in _REGRESSION_NUMBERS
    },
    **{f"{name}_exact": Result(float, "in closed form") for name in _REGRESSION_NUMBERS},
    "converged": Result(bool, "whether the solver converged"),
}

#: Engines by name; a new one is one function and one line here.
ENGINES = {
    "theory": Engine(theory, THEORY, THEORY_RESULTS),
    "train": Engine(train, TRAIN, TRAIN_RESULTS),
    "amp": Engine(amp, AMP, AMP_RESULTS),
    "critical": Engine(critical, CRITICAL, CRITICAL_RESULTS),
    "bayes": Engine(bayes, BAYES, BAYES_RESULTS),
    "regression": Engine(regression, REGRESSION, REGRESSION_RESULTS),
}
