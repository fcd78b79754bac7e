"""Repetitions of a descent: each follows from the seed, the number of sentences and its index."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dotphase.dmft import conditioned_descent
from dotphase.dmft.conditioned_descent import Initialization, Inputs, Records, UpdateRule
from dotphase.dmft.test_error import field_rule, test_errors
from dotphase.model import Model
from dotphase.numerics.quadrature import normal_points
from dotphase.runtime import interrupt, memory_limit
from dotphase.runtime.precision import in_double_precision
from dotphase.runtime.progress import ProgressCounter

#: Steps whose fresh fields are quasi-random; each later step has a small effect.
QUASI_RANDOM = 8
#: Initial capacity of the arrays over steps; it doubles when it is used up.
CAPACITY = 128
#: Sentences per step and student column, in units of max(1, alpha). With fewer, the steps would use
#: up too large a part of the matrices.
SENTENCES_PER_STEP = 4

_initial_state = eqx.filter_jit(conditioned_descent.initial_state)
_enlarge = eqx.filter_jit(conditioned_descent.enlarge)
#: Reuses the memory of the state.
_advance = eqx.filter_jit(conditioned_descent.advance, donate="all-except-first")


@dataclass(frozen=True)
class Descent:
    """Definition of a descent.

    Attributes
    ----------
    model, alpha : model, and sentences per dimension
    initialize : function of a key that returns the initialization
    d : dimension; None for the limit
    lr : size of every step
    momentum, batch_fraction : constants of the steps
    dtype : precision of the history
    seed : seed of all random numbers
    """

    model: Model
    alpha: float
    initialize: Callable[[Array], Initialization]
    d: int | None
    lr: Float[np.ndarray, " steps"]
    momentum: float
    batch_fraction: float
    dtype: np.dtype
    seed: int

    @property
    def min_sentences(self) -> int:
        """Smallest number of sentences for this number of steps."""
        size = SENTENCES_PER_STEP * self.model.student_rank * (len(self.lr) + 1)
        return int(size * max(1.0, self.alpha))

    def memory_per_repetition(self, sentences: int) -> int:
        """Memory of a repetition in bytes, most of it for the history."""
        r, length = self.model.student_rank, self.model.length
        steps = _capacity(len(self.lr) + 1)
        dims = length * r * steps
        history = 2 * length * r * steps * sentences * self.dtype.itemsize
        return history + (length + 1) * r * steps * dims * 8


@dataclass(frozen=True, eq=False)
class Repetition:
    """Quantities recorded along one descent.

    Attributes
    ----------
    records : quantities at every step
    test_error : test error at every step
    """

    records: Records
    test_error: Float[np.ndarray, " steps"]


def _capacity(steps: int) -> int:
    """Capacity of arrays for this number of steps: a power of two."""
    return max(16, 1 << (steps - 1).bit_length())


@in_double_precision
def run_repetition(descent: Descent, sentences: int, index: int) -> Repetition:
    """Run one descent with this number of sentences in the average; its seed contains `index`."""
    model, steps = descent.model, len(descent.lr)
    rng = np.random.default_rng([descent.seed, sentences, index])
    key = jax.random.key(int(rng.integers(2**63)))
    exact = descent.d is not None
    initial = descent.initialize(jax.random.fold_in(key, 1))
    rule = UpdateRule(
        exact=exact,
        batched=descent.batch_fraction < 1,
        d=jnp.asarray(float(descent.d or sentences / descent.alpha)),
        momentum=jnp.asarray(descent.momentum),
        batch_fraction=jnp.asarray(descent.batch_fraction),
    )
    teacher, fields = _first_fields(model, sentences, exact, rng)
    capacity = min(_capacity(steps + 1), CAPACITY)
    noise = jnp.asarray(rng.standard_normal((model.normals, sentences)))
    state = _initial_state(model, initial, rule, teacher, noise, fields[0], capacity, descent.dtype)
    while True:
        interrupt.check()
        lr = jnp.asarray(np.pad(descent.lr, (0, capacity))[:capacity])
        inputs = Inputs(model, initial, rule, fields, lr, key)
        state = _advance(inputs, state, jnp.asarray(min(capacity, steps + 1)))
        if capacity > steps:
            break
        capacity *= 2
        state = _enlarge(model, state, capacity)
    records = jax.tree.map(lambda rows: np.asarray(rows[: steps + 1]), state.records)
    gram = initial.teacher @ initial.teacher.T
    errors = test_errors(model, gram, state.records, field_rule(model, rng))
    return Repetition(records, np.asarray(errors[: steps + 1]))


def _first_fields(
    model: Model, sentences: int, exact: bool, rng: np.random.Generator
) -> tuple[Float[Array, "tokens t n"], Float[Array, "first tokens r n"]]:
    """Draw fields of the teacher and of the student's first weights."""
    t, r, length = model.teacher_rank, model.student_rank, model.length
    rows = length * (t + r * (1 if exact else QUASI_RANDOM))
    if exact:
        drawn = rng.standard_normal((rows, sentences))
    else:
        drawn = normal_points(rows, sentences, rng).T
    teacher = drawn[: length * t].reshape(length, t, sentences)
    if not exact:  # give the fields exactly the covariance of the limit
        root = np.linalg.cholesky(teacher @ teacher.swapaxes(1, 2) / sentences)
        teacher = np.linalg.solve(root, teacher)
    return jnp.asarray(teacher), jnp.asarray(drawn[length * t :].reshape(-1, length, r, sentences))


def run_repetitions(
    descent: Descent, sentences: int, repetitions: int, counter: ProgressCounter
) -> list[Repetition]:
    """Run several repetitions; on a CPU, as many at once as cores and memory allow."""

    def run(index: int) -> Repetition:
        repetition = run_repetition(descent, sentences, index)
        counter.tick()
        return repetition

    memory = descent.memory_per_repetition(sentences)
    memory_limit.check_storage("steps", len(descent.lr), memory // len(descent.lr))
    workers = 1
    if jax.default_backend() == "cpu":
        workers = int(
            np.clip(memory_limit.available_bytes() // (2 * memory), 1, os.cpu_count() or 1)
        )
    first = [run(0)]  # the others use its compiled functions
    with ThreadPoolExecutor(workers, thread_name_prefix="dotphase-dynamics") as threads:
        return first + list(threads.map(run, range(1, repetitions)))
