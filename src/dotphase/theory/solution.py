"""The result of a solve: `Solution`, with its verdicts and its printout."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Float

from dotphase.config.formatting import LABELS, Description, format_with_model_error
from dotphase.config.serialization import fields_except
from dotphase.model import Model
from dotphase.storage.results import Result
from dotphase.theory.branches import BRANCHES
from dotphase.theory.classification import matches_branch
from dotphase.theory.overlaps import DIMENSIONS, Overlaps, norms_of
from dotphase.theory.stability import Stability

if TYPE_CHECKING:
    from dotphase.theory.finite_d_corrections import AtDimension
    from dotphase.theory.sensitivity import Derivative

#: Fields that JSON leaves out.
NOT_IN_JSON = ("model", "free_energy", "samples", "loss_slope")


@dataclass(frozen=True, eq=False, repr=False)
class Solution(Result):
    """One fixed point of state evolution, with everything needed to judge it.

    Attributes
    ----------
    model, alpha, branch : the request; `branch` is "custom" for a user's own initialization
    found : branch of the fixed point
    overlaps : order parameters per token
    train_loss : training loss per dimension, eps_t
    free_energy : the same from the free energy; equal at a fixed point
    test_error : eps_g
    linear_test_error : test error of the linear positional baseline; NaN where there is none
    residual : undamped relative residual at the returned overlaps
    iterations : evaluations of the map, on all numbers of points together
    converged : whether the iteration settled on a fixed point
    message : why the solver stopped, and whether the quadrature error missed `rtol`
    stderr : quadrature standard errors of q, m, V, theta, train_loss, test_error
    model_error : how much breaking replica symmetry would change the training loss, the test error,
        theta and m, as estimated from the jumps of the proximal map
    samples : values of each scramble alone; two solutions with the same seed share
        their points, so the error of a difference is the spread of the differences
    loss_slope : derivative of the training loss in alpha, exact at a fixed point
    stability : whether the theory can be trusted here, and why
    log2_points : log2 of the number of Gaussian points used last
    seed : seed of their scrambles
    seconds : wall time, failed attempts included
    ranges : lowest and highest values over several seeds, where one set of points does not
        determine the result; empty elsewhere

    Examples
    --------
    >>> solution = dp.solve(dp.positional_semantic(), alpha=2.0, log2_points=12)
    >>> solution.branch, solution.overlaps.theta.shape
    ('semantic', (2, 1, 1))
    """

    dimensions: ClassVar = DIMENSIONS | {
        f"{name}_samples": ("scramble",) for name in ("train_loss", "test_error")
    }

    model: Model = field(repr=False)
    alpha: float
    branch: str
    found: str
    overlaps: Overlaps
    train_loss: float
    free_energy: float
    test_error: float
    linear_test_error: float
    residual: float
    iterations: int
    converged: bool
    message: str
    stderr: dict[str, float]
    model_error: dict[str, float]
    samples: dict[str, Float[np.ndarray, " scrambles"]] = field(repr=False)
    loss_slope: float
    stability: Stability
    log2_points: int
    seed: int
    seconds: float
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def matches_branch(self) -> bool:
        """True if the fixed point is one of the requested branch."""
        return matches_branch(self.branch, self.found)

    @property
    def on_branch(self) -> bool:
        """True if a fixed point of the requested branch was found, be it a minimum or a saddle."""
        return self.matches_branch and self.converged

    @property
    def may_exist(self) -> bool:
        """False on another branch, if small changes towards the requested one clearly decay."""
        if self.matches_branch:
            return True
        alignments = {"theta", "m"} - BRANCHES[self.branch].vanishing
        return not alignments or not all(map(self.stability.decays, alignments))

    @property
    def is_minimum(self) -> bool:
        """True if a fixed point of the requested branch was found that is no saddle."""
        return self.on_branch and self.stability.kind != "saddle"

    def value(self, name: str) -> float:
        """One of the norms, or a result by its name."""
        return float(self.norms[name] if name in self.norms else getattr(self, name))

    def plot(self, path: str | Path | None = None) -> Any:
        """Plot the mean attention of teacher and student, as `dotphase.plot.attention`.

        Examples
        --------
        >>> solution = dp.solve(dp.positional_semantic(), alpha=2.0, log2_points=12)
        >>> figure = solution.plot("attention.png")
        """
        import dotphase

        return dotphase.plot.attention(dotphase.attention(self), path)

    def derivative(self, parameter: str) -> Derivative:
        """Derivatives of the overlaps and losses by alpha or by a number of the model.

        Parameters
        ----------
        parameter : str
            "alpha", "ridge", "sigma", or a number of the teacher or student, such as "omega".

        Examples
        --------
        >>> solution = dp.solve(dp.positional_semantic(), alpha=2.0, log2_points=12)
        >>> slope = solution.derivative("ridge")
        >>> slope.value["train_loss"] > 0
        True
        """
        from dotphase.theory.sensitivity import derivative

        return derivative(self, parameter)

    def at(self, d: int) -> AtDimension:
        """The losses at finite dimension, with the terms of order 1/d that are known.

        Examples
        --------
        >>> solution = dp.solve(dp.positional_semantic(), alpha=2.0, log2_points=12)
        >>> solution.at(d=200).test_error > solution.test_error
        True
        """
        from dotphase.theory.finite_d_corrections import at_dimension

        return at_dimension(self, d)

    @property
    def norms(self) -> dict[str, float]:
        """Sizes of the overlaps of token 1: absolute values, Frobenius norms above rank one."""
        return norms_of(self.overlaps)

    def to_dict(self) -> dict[str, Any]:
        """The solution as plain numbers, lists and strings, ready for JSON."""
        parts = self.overlaps._asdict()
        return fields_except(self, *NOT_IN_JSON) | {
            "overlaps": {name: np.asarray(part).tolist() for name, part in parts.items()},
            "norms": self.norms,
            "stability": dict(vars(self.stability)),
        }

    def __repr__(self) -> str:
        trust = "trusted" if self.on_branch and self.stability.trusted else "not trusted"
        return (
            f"<Solution: {self.found} branch at alpha = {self.alpha:g}, "
            f"train_loss = {self.train_loss:.6g}, test_error = {self.test_error:.6g}, {trust}>"
        )

    @property
    def description(self) -> Description:
        """Norms, losses and errors; whether it converged and can be trusted."""
        values = {**self.norms, "train_loss": self.train_loss, "test_error": self.test_error}
        head = f"{self.found} branch at alpha = {self.alpha:g}: {self.stability.described}"
        tokens = "" if np.ptp(self.model.sigma) == 0 else " (q, m, V, theta: norms for token 1)"
        if not self.converged:
            head = (
                f"NO RESULT for the {self.branch} branch at alpha = {self.alpha:g}; "
                "last values of the iteration:"
            )
        elif not self.matches_branch:
            head += f" (requested {self.branch}: no such fixed point was found)"
        rows = []
        for name, value in values.items():
            error = format_with_model_error(
                value, self.stderr[name], self.model_error.get(name, 0.0)
            )
            linear = f"   linear layer {self.linear_test_error:.6f}"
            has_linear = name == "test_error" and np.isfinite(self.linear_test_error)
            rows.append((LABELS.get(name, name), error + (linear if has_linear else "")))
        return Description(head + tokens, tuple(rows), tuple(self._notes()))

    def _notes(self) -> list[str]:
        """Notes below the numbers: convergence, errors, trust."""
        notes = []
        if self.ranges:
            parts = [name for name in ("theta", "m") if self.ranges[name][1] > 0]
            spans = ", ".join(
                "{} from {:.3g} to {:.3g}".format(name, *self.ranges[name]) for name in parts
            )
            notes.append(f"NOT DETERMINED by these points: over other seeds {spans}")
        state = "converged" if self.converged else "NOT CONVERGED"
        notes.append(
            f"{state}: {self.message}; residual {self.residual:.1e} after "
            f"{self.iterations} iterations, 2^{self.log2_points} points"
        )
        verdict = "trusted" if self.stability.trusted else "NOT TRUSTED"
        notes.append(
            f"{verdict}: {self.stability.reason} (replicon {self.stability.replicon:.3f}, "
            f"jump weight {self.stability.jump_weight:.3f})"
        )
        return notes
