"""What the dynamics gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float

from dotphase.config.formatting import Description, Printable, format_value
from dotphase.config.step_sizes import is_constant
from dotphase.model import Model
from dotphase.storage.provenance import provenance

if TYPE_CHECKING:
    import xarray as xr

#: What has a value and a standard error at every step.
QUANTITIES = {
    "train_loss": "training loss per dimension, eps_t",
    "test_error": "test error, eps_g",
    "theta": "norm of theta of token 1",
    "m": "norm of m of token 1",
    "q": "norm of q of token 1",
}
#: Steps that are printed.
SHOWN = 8


class PathOverlaps(NamedTuple):
    """Overlaps of every token at every step, with their signs, averaged over the repetitions.

    Attributes
    ----------
    theta : ``sigma_l^2 Q^T Q*/d``
    m : ``Q^T p_l/sqrt d``
    q : ``sigma_l^2 Q^T Q/d``
    """

    theta: Float[np.ndarray, "steps tokens r t"]
    m: Float[np.ndarray, "steps tokens r"]
    q: Float[np.ndarray, "steps tokens r r"]


@dataclass(frozen=True)
class Trajectory(Printable):
    """Gradient descent step by step, as dynamical mean-field theory has it.

    Attributes
    ----------
    model, alpha, start, momentum, batch_fraction : as given to `dynamics`
    d : dimension; None for the limit of large d
    lr : size of every step
    steps : 0, 1, ..., the number of steps asked for
    train_loss, test_error : per step; the loss is that of all sentences, per dimension
    theta, m, q : per step, norms of the overlaps of token 1 as everywhere
    gradient_norm : per step, norm of the gradient over sqrt d
    overlaps : those of all tokens, with signs
    stderr : standard error of each of `QUANTITIES` at every step
    samples : every one of them for each repetition
    trusted_until : last step up to which the repetitions agree
    diverged_at : step at which the loss has grown without bound, if it has
    accurate : whether the standard errors met `rtol`
    message : whether it can be trusted, and why not
    sentences, repetitions : size of an ensemble, and how many there are
    seed : seed of everything random
    seconds : wall time

    Examples
    --------
    >>> small = {"log2_ensemble": 8, "repetitions": 2, "rtol": None}
    >>> path = dp.dynamics(dp.positional_semantic(), alpha=2.0, steps=5, lr=8.0, **small)
    >>> path.theta.shape, path.trusted_until
    ((6,), 5)
    """

    model: Model = field(repr=False)
    alpha: float
    start: str
    momentum: float
    batch_fraction: float
    d: int | None
    lr: Float[np.ndarray, " lasting"] = field(repr=False)
    steps: np.ndarray = field(repr=False)
    train_loss: Float[np.ndarray, " steps"] = field(repr=False)
    test_error: Float[np.ndarray, " steps"] = field(repr=False)
    theta: Float[np.ndarray, " steps"] = field(repr=False)
    m: Float[np.ndarray, " steps"] = field(repr=False)
    q: Float[np.ndarray, " steps"] = field(repr=False)
    gradient_norm: Float[np.ndarray, " steps"] = field(repr=False)
    overlaps: PathOverlaps = field(repr=False)
    stderr: dict[str, Float[np.ndarray, " steps"]] = field(repr=False)
    samples: dict[str, Float[np.ndarray, "repetitions steps"]] = field(repr=False)
    trusted_until: int
    diverged_at: int | None
    accurate: bool
    message: str
    sentences: int
    repetitions: int
    seed: int
    seconds: float

    @property
    def diverged(self) -> bool:
        """Whether the descent ran away."""
        return self.diverged_at is not None

    def to_dict(self) -> dict[str, Any]:
        """The path as plain numbers and lists, ready for JSON."""
        told = (
            "alpha", "start", "d", "momentum", "batch_fraction", "steps", *QUANTITIES,
            "gradient_norm", "stderr", "trusted_until", "diverged_at", "accurate", "message",
            "sentences", "repetitions", "seed", "seconds",
        )  # fmt: skip
        shown = {name: getattr(self, name) for name in told}
        return {**shown, "lr": float(self.lr[0]) if is_constant(self.lr) else self.lr}

    def dataset(self) -> xr.Dataset:
        """The path as a labelled dataset over `step`, with an axis `repetition` for the samples."""
        import xarray as xr

        numbers: dict[str, Any] = {}
        for name, text in QUANTITIES.items():
            numbers[name] = ("step", getattr(self, name), {"long_name": text})
            numbers[f"{name}_stderr"] = ("step", self.stderr[name])
            numbers[f"{name}_samples"] = (("repetition", "step"), self.samples[name])
        numbers["gradient_norm"] = ("step", self.gradient_norm)
        numbers["trusted"] = ("step", self.steps <= self.trusted_until)
        numbers["lr"] = ("step", np.append(self.lr, np.nan))
        axes = ("step", "token", "column")
        numbers["theta_all"] = ((*axes, "teacher_column"), self.overlaps.theta)
        numbers["m_all"] = (axes, self.overlaps.m)
        numbers["q_all"] = ((*axes, "other_column"), self.overlaps.q)
        asked = ("alpha", "start", "d", "momentum", "batch_fraction", "sentences", "seed",
                 "trusted_until", "diverged_at", "message", "seconds")  # fmt: skip
        attributes = provenance(self.model, **{name: getattr(self, name) for name in asked})
        return xr.Dataset(numbers, coords={"step": self.steps}, attrs=attributes)

    @property
    def description(self) -> Description:
        """Some of the steps, with errors."""
        where = "d -> infinity" if self.d is None else f"d = {self.d}"
        rule = f"lr = {self.lr[0]:g}" if is_constant(self.lr) else "lr by a schedule"
        rule += f", momentum {self.momentum:g}" if self.momentum else ""
        rule += f", batches of {self.batch_fraction:g} n" if self.batch_fraction < 1 else ""
        head = f"gradient descent at alpha = {self.alpha:g}, {where}, start {self.start}, {rule}"
        rows = [("step", "".join(f"{name:>24}" for name in QUANTITIES))]
        last = len(self.steps) - 1
        for step in sorted({round(last * (k / (SHOWN - 1)) ** 2) for k in range(SHOWN)}):
            cells = (
                format_value(getattr(self, name)[step], self.stderr[name][step])
                for name in QUANTITIES
            )
            rows.append((str(step), "".join(f"{cell:>24}" for cell in cells)))
        size = f"{self.repetitions} x {self.sentences} sentences, {self.seconds:.1f} s"
        return Description(head, tuple(rows), (f"{self.message} ({size})",))
