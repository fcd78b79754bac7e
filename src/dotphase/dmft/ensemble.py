"""One repetition of a descent, from its seed to what was noted, and many of them."""

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

from dotphase.dmft import kernel
from dotphase.dmft.kernel import Beginning, Given, Records, Rule
from dotphase.dmft.test_error import points_of, test_errors
from dotphase.model import Model
from dotphase.numerics.quadrature import normal_points
from dotphase.runtime import interrupt, memory_limit
from dotphase.runtime.precision import in_double_precision

#: Steps for which the fresh fields are quasi-random: later ones matter less, each by itself.
QUASI_RANDOM = 8
#: Steps that there is room for at first; it is doubled when it is used up.
ROOM = 128
#: Sentences for each step that is taken, in units of max(1, alpha): fewer would leave too little
#: of the matrices unseen.
PER_STEP = 4

_launch = eqx.filter_jit(kernel.launch)
_widen = eqx.filter_jit(kernel.widen)
#: In the memory of the state that it is given.
_advance = eqx.filter_jit(kernel.advance, donate="all-except-first")


@dataclass(frozen=True)
class Descent:
    """What is repeated.

    Attributes
    ----------
    model, alpha : what is learned, from how many sentences per dimension
    begin : from a key to where it begins
    d : dimension; None for the limit
    lr : size of every step
    momentum, batch_fraction : of the steps
    dtype : precision of the history
    seed : of everything random
    """

    model: Model
    alpha: float
    begin: Callable[[Array], Beginning]
    d: int | None
    lr: Float[np.ndarray, " steps"]
    momentum: float
    batch_fraction: float
    dtype: np.dtype
    seed: int

    @property
    def least_sentences(self) -> int:
        """The fewest sentences that so many steps can be taken with."""
        return int(PER_STEP * self.model.student_rank * (len(self.lr) + 1) * max(1.0, self.alpha))

    def bytes_of(self, sentences: int) -> int:
        """Memory that a repetition needs, most of it for the history."""
        r, length, steps = self.model.student_rank, self.model.length, _room(len(self.lr) + 1)
        dims = length * r * steps
        history = 2 * length * r * steps * sentences * self.dtype.itemsize
        return history + (length + 1) * r * steps * dims * 8


@dataclass(frozen=True)
class Repetition:
    """What was noted along one descent.

    Attributes
    ----------
    records : by step
    test_error : by step
    """

    records: Records
    test_error: Float[np.ndarray, " steps"]


def _room(steps: int) -> int:
    """How many steps the lists have room for."""
    return max(16, 1 << (steps - 1).bit_length())


@in_double_precision
def repeat(descent: Descent, sentences: int, number: int) -> Repetition:
    """One descent on so many effective sentences; its number is part of its seed."""
    model, steps = descent.model, len(descent.lr)
    rng = np.random.default_rng([descent.seed, sentences, number])
    key = jax.random.key(int(rng.integers(2**63)))
    exact = descent.d is not None
    begun = descent.begin(jax.random.fold_in(key, 1))
    rule = Rule(
        exact=exact,
        batched=descent.batch_fraction < 1,
        d=jnp.asarray(float(descent.d or sentences / descent.alpha)),
        momentum=jnp.asarray(descent.momentum),
        batch_fraction=jnp.asarray(descent.batch_fraction),
    )
    teacher, points = _first_fields(model, sentences, exact, rng)
    room = min(_room(steps + 1), ROOM)
    noise = jnp.asarray(rng.standard_normal((model.normals, sentences)))
    state = _launch(model, begun, rule, teacher, noise, points[0], room, descent.dtype)
    while True:
        interrupt.check()
        lr = jnp.asarray(np.pad(descent.lr, (0, room))[:room])
        until = jnp.asarray(min(room, steps + 1))
        state = _advance(Given(model, begun, rule, points, lr, key), state, until)
        if room > steps:
            break
        room *= 2
        state = _widen(model, state, room)
    records = jax.tree.map(lambda part: np.asarray(part[: steps + 1]), state.records)
    found = test_errors(
        model, begun.teacher @ begun.teacher.T, state.records, points_of(model, rng)
    )
    return Repetition(records, np.asarray(found[: steps + 1]))


def _first_fields(
    model: Model, sentences: int, exact: bool, rng: np.random.Generator
) -> tuple[Float[Array, "tokens t n"], Float[Array, "first tokens r n"]]:
    """Fields of the teacher, and of the first weights of the student."""
    t, r, length = model.teacher_rank, model.student_rank, model.length
    rows = length * (t + r * (1 if exact else QUASI_RANDOM))
    if exact:
        drawn = rng.standard_normal((rows, sentences))
    else:
        drawn = normal_points(rows, sentences, rng).T
    teacher = drawn[: length * t].reshape(length, t, sentences)
    if not exact:  # exactly of the covariance they have in the limit
        root = np.linalg.cholesky(teacher @ teacher.swapaxes(1, 2) / sentences)
        teacher = np.linalg.solve(root, teacher)
    return jnp.asarray(teacher), jnp.asarray(drawn[length * t :].reshape(-1, length, r, sentences))


def repeat_many(
    descent: Descent, sentences: int, count: int, on_repetition: Callable[[], None]
) -> list[Repetition]:
    """So many repetitions; on a CPU as many at once as there are cores and memory for."""

    def one(number: int) -> Repetition:
        found = repeat(descent, sentences, number)
        on_repetition()
        return found

    each = descent.bytes_of(sentences)
    memory_limit.check_storage("steps", len(descent.lr), each // len(descent.lr))
    workers = 1
    if jax.default_backend() == "cpu":
        workers = int(np.clip(memory_limit.available_bytes() // (2 * each), 1, os.cpu_count() or 1))
    first = [one(0)]  # what is compiled here serves the others
    with ThreadPoolExecutor(workers, thread_name_prefix="dotphase-dynamics") as threads:
        return first + list(threads.map(one, range(1, count)))
