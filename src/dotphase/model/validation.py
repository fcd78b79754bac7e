"""Check the functions of a model on sample fields when it is made.

A function that fails, or returns a wrong shape or type, raises a one-line `InvalidInput`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dotphase import model as models
from dotphase.errors import InvalidInput
from dotphase.runtime.devices import devices
from dotphase.runtime.precision import in_double_precision

#: Sizes of the sample fields of a loss.
LOSS_SIZES = (0.1, 1.0, 10.0, 100.0)
#: Number of sample fields of attention functions, and their sizes in units of sigma.
FIELDS, SIZES = 4096, (1.0, 1.0, 1.0, 1.0, 1.5, 0.1, 1e-3, 1e-6)
#: Advice on frequent errors of functions that are not written for JAX.
ADVICE = {
    "TracerBoolConversionError": "use jnp.where instead of a Python condition on its argument",
    "TracerArrayConversionError": "use jax.numpy instead of NumPy",
}


def check_functions(model: models.Model) -> None:
    """Call every function of a model; `InvalidInput` names the first invalid one."""
    if model.loss is None:
        _check_attention(model)
    else:
        _check_channel(model)


def _check_attention(model: models.Model) -> None:
    """Check teacher and student of an attention model."""
    for name in ("metric", "proximal"):
        if getattr(model, name) is not None:
            raise InvalidInput(name, getattr(model, name), "needs a loss of the model's own")
    label = model.label if model.normals else model.teacher
    _check_function("teacher", model.teacher, label, model.sigma, model.teacher_rank, model.normals)
    _check_function("student", model.student, model.student, model.sigma, model.student_rank)


@in_double_precision
def _check_channel(model: models.Model) -> None:
    """Check teacher, loss, metric and proximal map on sample fields."""
    if model.student is not None:
        rule = "must be None for a model with a loss of its own, which takes the fields"
        raise InvalidInput("student", name_of(model.student), rule)
    is_named = isinstance(model.proximal, str)
    if is_named and (model.proximal != "search" or model.length * model.student_rank > 1):
        rule = 'must be a function, or "search" for a single field'
        raise InvalidInput("proximal", model.proximal, rule)
    rng = np.random.default_rng(0)
    h, x = (rng.standard_normal((64, model.length, rank))
            for rank in (model.teacher_rank, model.student_rank))  # fmt: skip
    x *= np.repeat(LOSS_SIZES, 64 // len(LOSS_SIZES))[:, None, None]
    z = rng.standard_normal((64, model.normals))
    target = _call_on_sample("teacher", model.teacher, model.label, h, z)
    if not all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(target)):
        raise InvalidInput("teacher", name_of(model.teacher), "must return finite numbers")
    for name in ("loss", "metric"):
        if getattr(model, name) is not None:
            _check_value(model, name, x, target)
    if model.proximal is not None and not is_named:
        V = np.broadcast_to(np.eye(x[0].size), (64, x[0].size, x[0].size))
        minimizers = _call_on_sample("proximal", model.proximal, model.proximal, x, V, target)
        if np.shape(minimizers) != x.shape or not np.all(np.isfinite(minimizers)):
            rule = f"must return a finite array of shape {x.shape[1:]} for (omega, V, label)"
            raise InvalidInput("proximal", name_of(model.proximal), rule)


def _check_value(model: models.Model, name: str, x: np.ndarray, target: Any) -> None:
    """Check that a loss or a metric returns one finite number, and a loss none below zero."""
    function = getattr(model, name)
    values = _call_on_sample(name, function, function, x, target)
    rule = f"must return one finite number for ({model.length}, {model.student_rank}) fields"
    if np.shape(values) != (64,):
        rule = f"{rule} and a label, but it returned shape {np.shape(values)[1:]}"
        raise InvalidInput(name, name_of(function), rule)
    if not np.all(np.isfinite(values)):
        raise InvalidInput(name, name_of(function), f"{rule}, but some are not")
    least = float(np.min(values))
    if name == "loss" and least < 0:
        rule = f"must be bounded below by zero, but it is {least:.3g} for some fields"
        raise InvalidInput(name, name_of(function), rule)


def call_many(function: Callable[..., Any], *arguments: Float[Array | np.ndarray, "n ..."]) -> Any:
    """Apply a function of one sentence to many; each function is compiled once.

    Fewer sentences than in a sample are padded to its size, for which the function is compiled.
    """
    count, size = len(arguments[0]), _sample_size(*np.shape(arguments[0])[1:3])
    if count >= size:
        return _call_all(function, *arguments)
    padded = [np.concatenate([part, np.repeat(part[:1], size - count, 0)]) for part in arguments]
    return jax.tree.map(lambda part: np.asarray(part)[:count], _call_all(function, *padded))


@eqx.filter_jit
def _call_all(function: Callable[..., Any], *arguments: Float[Array | np.ndarray, "n ..."]) -> Any:
    return jax.vmap(function)(*map(jnp.asarray, arguments))


def name_of(function: Any) -> str:
    """Name of a function in messages."""
    return str(getattr(function, "__name__", type(function).__name__))


def _call_on_sample(field: str, value: Any, function: Any, *arguments: Any) -> Any:
    """Apply a user's function to many sentences; `InvalidInput` with the reason if it fails."""
    if not callable(value):
        raise InvalidInput(field, value, "must be a JAX function")
    arrays = jax.tree.map(jnp.asarray, arguments)
    try:
        return jax.device_get(jax.jit(jax.vmap(function))(*arrays))
    except (Exception, SystemExit) as error:
        rule = f"must be a JAX function, but it raised {_reason(error)}"
        raise InvalidInput(field, name_of(value), rule) from error


def _reason(error: BaseException) -> str:
    """Name an error with its first line, or with the change that mends it."""
    kind = type(error).__name__
    if kind in ADVICE:
        return f"{kind}: {ADVICE[kind]}"
    return f"{kind}: {(str(error).strip() or 'no message').splitlines()[0]}"


@in_double_precision
def _check_function(
    field: str, value: Any, function: Any, sigma: np.ndarray, rank: int, normals: int = 0
) -> None:
    """Check that an attention function returns a finite (L, L) array on many fields."""
    length = sigma.size
    allowed = f"must be a JAX function that takes a ({length}, {rank}) array and returns "
    allowed += f"a finite ({length}, {length}) array"
    name = name_of(value)
    if not callable(value):
        raise InvalidInput(field, value, allowed)
    fields = _sample_fields(sigma, rank)
    more = [np.random.default_rng(1).standard_normal((len(fields), normals))] if normals else []
    devices()  # An error about missing devices must not look like an error of the function.
    try:
        result = call_many(function, fields, *more)
    except (Exception, SystemExit) as error:
        rule = f"{allowed}, but it raised {_reason(error)}"
        raise InvalidInput(field, name, rule) from error
    is_array = isinstance(result, jax.Array)
    if not is_array or result.shape != (len(fields), length, length):
        returned = f"shape {result.shape[1:]}" if is_array else type(result).__name__
        raise InvalidInput(field, name, f"{allowed}, but it returned {returned}")
    if not jnp.issubdtype(result.dtype, jnp.floating):
        raise InvalidInput(field, name, f"{allowed}, but it returned {result.dtype} numbers")
    position = where_not_finite(fields, result)
    if position is not None:
        raise InvalidInput(field, name, f"{allowed}, but some entries are not finite at {position}")
    if not getattr(value, "__module__", "").startswith("dotphase."):
        _warn_if_it_varies(field, function, fields[0], *(part[0] for part in more))


def _warn_if_it_varies(field: str, function: Callable[..., Any], *arguments: np.ndarray) -> None:
    """Warn about a function that is traced differently each time, by side effects or NumPy noise.

    Compiled code keeps the numbers of one call for ever.
    """
    # New functions, because JAX remembers the trace of each.
    first, second = (jax.make_jaxpr(lambda *x: function(*x))(*arguments) for _ in range(2))
    consts = zip(first.consts, second.consts, strict=False)
    same = str(first) == str(second) and all(np.array_equal(a, b) for a, b in consts)
    if not same:
        rule = "must depend on its argument alone, but two calls differ (random numbers?)"
        warnings.warn(f"{field} = {name_of(function)!r}: {rule}", stacklevel=2)


def _sample_fields(sigma: np.ndarray, rank: int) -> Float[np.ndarray, "n tokens rank"]:
    """Sample projected tokens of the size of sigma, some larger, some close to zero."""
    each = _sample_size(sigma.size, rank) // len(SIZES)
    normal = np.random.default_rng(0).standard_normal((len(SIZES), each, sigma.size, rank))
    sized = np.asarray(SIZES)[:, None, None, None] * sigma[:, None] * normal
    return sized.reshape(-1, sigma.size, rank)


def _sample_size(length: int, rank: int) -> int:
    """Number of sample sentences; fewer of long ones."""
    each = int(np.clip(2**20 // (length * max(length, rank)), 1, FIELDS // len(SIZES)))
    return each * len(SIZES)


def where_not_finite(
    fields: Float[np.ndarray, "n tokens rank"], values: Float[Array | np.ndarray, "n ..."]
) -> str | None:
    """Describe the first field at which a value is not finite; None if all are finite."""
    finite = np.isfinite(np.asarray(values)).reshape(len(fields), -1).all(axis=1)
    if finite.all():
        return None
    first = np.asarray(fields)[int(np.argmin(finite))]
    text = " ".join(np.array2string(first, precision=4, separator=",").split())
    return f"h = {text}" if len(text) <= 80 else f"h = {text[:77]}..."
