"""The result of the dynamics: `Trajectory`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float

from dotphase.config.formatting import Description, format_value
from dotphase.config.step_sizes import is_constant
from dotphase.model import Model
from dotphase.storage.provenance import provenance
from dotphase.storage.results import Result

if TYPE_CHECKING:
    import xarray as xr

#: Quantities with a value and a standard error at every step.
QUANTITIES = {
    "train_loss": "training loss per dimension, eps_t",
    "test_error": "test error, eps_g",
    "theta": "norm of theta of token 1",
    "m": "norm of m of token 1",
    "q": "norm of q of token 1",
}
#: Long names of the other variables of the dataset.
LONG_NAMES = {
    "gradient_norm": "norm of the gradient over sqrt(d)",
    "trusted": "repetitions agree up to this step",
    "lr": "step size",
    "theta_all": "overlap with the teacher, with sign, of every token",
    "m_all": "overlap with the positions, with sign, of every token",
    "q_all": "overlap of the student with itself, of every token",
}
#: Number of steps that are printed.
PRINTED_STEPS = 8


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

    def __repr__(self) -> str:
        steps, tokens = self.m.shape[:2]
        return f"<PathOverlaps: theta, m, q of {tokens} tokens at {steps} steps>"


@dataclass(frozen=True, eq=False, repr=False)
class Trajectory(Result):
    """Gradient descent step by step, from dynamical mean-field theory.

    Attributes
    ----------
    model, alpha, start, momentum, batch_fraction : arguments of `dynamics`
    d : dimension; None for the limit of large d
    lr : size of every step
    steps : step numbers 0, 1, ..., T
    train_loss, test_error : values at every step; the loss is that of all sentences, per dimension
    theta, m, q : norms of the overlaps of token 1 at every step
    gradient_norm : norm of the gradient over sqrt d at every step
    overlaps : overlaps of all tokens, with signs
    stderr : standard error of each of `QUANTITIES` at every step
    samples : values of each of `QUANTITIES` for every repetition
    trusted_until : last step up to which the repetitions agree
    diverged_at : step at which the loss has grown without bound; None if there is none
    accurate : True if the standard errors meet `rtol`
    message : verdict on the result, with its reason
    sentences, repetitions : size of an ensemble, and number of ensembles
    seed : seed of all random numbers
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
    lr: Float[np.ndarray, " steps_taken"] = field(repr=False)
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
        """True if the training loss has grown without bound."""
        return self.diverged_at is not None

    def to_dict(self) -> dict[str, Any]:
        """Return the path as plain numbers and lists, ready for JSON."""
        names = (
            "alpha", "start", "d", "momentum", "batch_fraction", "steps", *QUANTITIES,
            "gradient_norm", "stderr", "trusted_until", "diverged_at", "accurate", "message",
            "sentences", "repetitions", "seed", "seconds",
        )  # fmt: skip
        values = {name: getattr(self, name) for name in names}
        return {**values, "lr": float(self.lr[0]) if is_constant(self.lr) else self.lr}

    def dataset(self) -> xr.Dataset:
        """Return the path as a labeled dataset over `step`; samples also over `repetition`."""
        import xarray as xr

        variables: dict[str, Any] = {}
        for name, text in QUANTITIES.items():
            error = {"long_name": f"standard error of the {text}"}
            variables[name] = ("step", getattr(self, name), {"long_name": text})
            variables[f"{name}_stderr"] = ("step", self.stderr[name], error)
            samples = {"long_name": f"{text}, of each repetition"}
            variables[f"{name}_samples"] = (("repetition", "step"), self.samples[name], samples)
        axes = ("step", "token", "column")
        others = {
            "gradient_norm": ("step", self.gradient_norm),
            "trusted": ("step", self.steps <= self.trusted_until),
            "lr": ("step", np.append(self.lr, np.nan)),
            "theta_all": ((*axes, "teacher_column"), self.overlaps.theta),
            "m_all": (axes, self.overlaps.m),
            "q_all": ((*axes, "other_column"), self.overlaps.q),
        }
        for name, (dims, values) in others.items():
            variables[name] = (dims, values, {"long_name": LONG_NAMES[name]})
        for variable in variables.values():
            variable[2]["units"] = "1"
        names = ("alpha", "start", "d", "momentum", "batch_fraction", "sentences", "seed",
                 "trusted_until", "diverged_at", "message", "seconds")  # fmt: skip
        attributes = provenance(self.model, **{name: getattr(self, name) for name in names})
        coords = {"step": ("step", self.steps, {"long_name": "step", "units": "1"})}
        return xr.Dataset(variables, coords=coords, attrs=attributes)

    @property
    def description(self) -> Description:
        """Values with errors at a few steps."""
        dimension = "d -> infinity" if self.d is None else f"d = {self.d}"
        rule = f"lr = {self.lr[0]:g}" if is_constant(self.lr) else "lr by a schedule"
        rule += f", momentum {self.momentum:g}" if self.momentum else ""
        rule += f", batches of {self.batch_fraction:g} n" if self.batch_fraction < 1 else ""
        title = (
            f"gradient descent at alpha = {self.alpha:g}, {dimension}, start {self.start}, {rule}"
        )
        table = [("step", *QUANTITIES)]
        last = len(self.steps) - 1
        spacing = (np.arange(PRINTED_STEPS) / (PRINTED_STEPS - 1)) ** 2
        for step in sorted({round(last * position) for position in spacing.tolist()}):
            cells = (
                format_value(getattr(self, name)[step], self.stderr[name][step])
                for name in QUANTITIES
            )
            table.append((str(step), *cells))
        size = f"{self.repetitions} x {self.sentences} sentences, {self.seconds:.1f} s"
        return Description(title, notes=(f"{self.message} ({size})",), table=tuple(table))
