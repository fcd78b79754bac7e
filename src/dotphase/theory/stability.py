"""Decide if the replica-symmetric theory can be trusted at a fixed point.

The fixed point must be a minimum of the training loss (`dotphase.theory.multipliers`), or training
leaves it. At a minimum, two more conditions must hold. Breaking replica symmetry must change the
loss and the overlaps by little (`dotphase.theory.model_error`). And the replicon

    Lambda = spectral radius of
        (M_l) -> (alpha sum_i w_i gamma_{l,i} R_i sum_{k,n} gamma_{k,i} E[G_kn M_n G_kn^T] R_i^T)

with ``G_kn = dg_k/domega_n`` must be below one, or the minimum is one of many. The weight of the
jumps of the proximal map is reported, too: the share by which the mean Jacobian of the map falls
short of the response from integration by parts. Jumps are the cause of symmetry breaking.

The squared response has a heavy tail (the map is steep next to its jumps). The replicon is thus the
median of the values of the scrambles, not the value of their mean.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from dotphase.config.formatting import Description, Printable, format_value
from dotphase.model import Model
from dotphase.theory.overlaps import Conjugates, Overlaps
from dotphase.theory.responses import Responses
from dotphase.theory.state_evolution import Averages, conjugates, resolvent

#: Relative change of the loss or of an overlap by replica symmetry breaking above which the theory
#: is not trusted.
LARGEST_MODEL_ERROR = 0.01
#: Beginning of a reason where minimum or saddle is not determined.
UNDECIDED = "whether it is a minimum is not determined"
#: Branch towards which a change of theta, or of m, leads.
TOWARDS = {"theta": "semantic", "m": "positional"}
#: Standard errors by which a multiplier must differ from one.
CLEAR = 2.0


@dataclass(frozen=True)
class Multipliers:
    """Factors of one step on small changes of the alignments.

    Attributes
    ----------
    value : the largest factor for changes mostly of theta, and for changes mostly of m
    stderr : their standard errors
    """

    value: dict[str, float] = field(default_factory=dict)
    stderr: dict[str, float] = field(default_factory=dict)

    @property
    def rising(self) -> list[str]:
        """Directions in which the point is not a minimum."""
        return [name for name, value in self.value.items() if value - 1 > self._margin(name)]

    @property
    def undecided(self) -> list[str]:
        """Directions whose multiplier equals one within its error."""
        return [
            name for name, value in self.value.items() if not abs(value - 1) > self._margin(name)
        ]

    def _margin(self, name: str) -> float:
        return CLEAR * self.stderr[name]

    @property
    def towards(self) -> list[str]:
        """Branches that the directions of `rising` lead towards."""
        return [TOWARDS[name] for name in self.rising]

    @property
    def kind(self) -> str:
        """``minimum``, ``saddle``, ``marginal``, or ``unknown`` without a measurement."""
        if not self.value:
            return "unknown"
        if self.rising:
            return "saddle"
        return "marginal" if self.undecided else "minimum"


@dataclass(frozen=True, repr=False)
class Stability(Printable):
    """Verdict on a fixed point.

    Attributes
    ----------
    kind : ``minimum``, ``saddle``, ``marginal`` (one of the two), or ``unknown``
    towards : branches that a saddle leads towards
    multipliers, multipliers_stderr : factors of one step on small changes of theta and of m, also
        if a symmetry fixes them at zero; above one at a saddle
    replicon : below one if replica symmetry is stable
    jump_weight : share of the response carried by jumps of the proximal map, in [0, 1]
    trusted : True if the point is a minimum, the replicon is below one, and breaking replica
        symmetry would change the training loss and the overlaps by less than 1%
    reason : the doubts, or a confirmation that there are none
    """

    replicon: float
    jump_weight: float
    trusted: bool
    reason: str
    kind: str = "unknown"
    towards: tuple[str, ...] = ()
    multipliers: dict[str, float] = field(default_factory=dict)
    multipliers_stderr: dict[str, float] = field(default_factory=dict)

    def decays(self, name: str) -> bool:
        """True if small changes of an overlap decay, by more than the error of the multiplier."""
        margin = CLEAR * self.multipliers_stderr.get(name, 0.0)
        return self.multipliers.get(name, 1.0) + margin < 1

    @property
    def doubts(self) -> list[str]:
        """The reasons not to trust the theory, one by one."""
        return [] if self.trusted else self.reason.split("; ")

    @property
    def description(self) -> Description:
        """Kind, verdict, and the numbers that it follows from."""
        verdict = "trusted" if self.trusted else "NOT TRUSTED"
        rows = [("replicon", f"{self.replicon:.3f}"), ("jump weight", f"{self.jump_weight:.3f}")]
        rows += [
            (f"multiplier {name}", format_value(value, self.multipliers_stderr.get(name)))
            for name, value in self.multipliers.items()
        ]
        title = f"{self.described}, {verdict.lower()}"
        return Description(title, tuple(rows), (f"{verdict}: {self.reason}",))

    @property
    def described(self) -> str:
        """The kind in words, as ``saddle (towards semantic)``."""
        return self.kind + (f" (towards {', '.join(self.towards)})" if self.towards else "")


def replicon_operator(
    model: Model,
    inverse: Float[np.ndarray, "atoms r r"],
    squared: Float[np.ndarray, "scrambles tokens tokens r*r r*r"],
) -> Float[np.ndarray, "scrambles tokens*r*r tokens*r*r"]:
    """Linear operator whose spectral radius, times alpha, is the replicon."""
    gamma, share = model.eigenvalues, model.eigenweights
    size = model.length * inverse.shape[-1] ** 2
    both = np.stack([np.kron(matrix, matrix) for matrix in inverse])
    # Through the weights of each eigendirection, from the force on token k to token l.
    through = np.einsum("a,la,ka,axy->lkxy", share, gamma, gamma, both)
    mixed = np.einsum("lkxy,sknyz->slxnz", through, squared)
    return mixed.reshape(-1, size, size)


def weight_of_jumps(model: Model, alpha: float, hats: Conjugates, response: Responses) -> float:
    """Share of the response that jumps of the proximal map carry, in [0, 1]."""
    by_parts = np.einsum("l,lij->ij", model.rho, hats.Vhat)
    smooth = -alpha * np.einsum("l,lij->ij", model.rho, np.mean(response.jacobian, axis=0))
    jumps = float(np.linalg.norm(by_parts - smooth))
    total = jumps + float(np.linalg.norm(smooth))
    return jumps / total if total > 0 else 0.0


def assess_stability(
    model: Model,
    alpha: float,
    overlaps: Overlaps,
    averages: Averages,
    response: Responses,
    measured: Multipliers,
    changes: dict[str, float],
) -> Stability:
    """Judge a fixed point from its averages and responses.

    Parameters
    ----------
    changes : dict
        Relative changes that breaking replica symmetry would make (`dotphase.theory.model_error`).
    """
    hats = conjugates(model, alpha, overlaps, averages)
    spread = alpha * replicon_operator(model, resolvent(model, hats), np.asarray(response.squared))
    replicon = np.nan
    if np.isfinite(spread).all():
        replicon = float(np.median(np.max(np.abs(np.linalg.eigvals(spread)), axis=-1)))
    jump_weight = weight_of_jumps(model, alpha, hats, response)
    doubts = []
    if measured.kind == "saddle":
        largest = ", ".join(f"{name} by {measured.value[name]:.2f}" for name in measured.rising)
        doubts.append(
            f"a saddle towards {', '.join(measured.towards)} (one step multiplies {largest})"
        )
    elif measured.kind != "minimum":
        doubts.append(f"{UNDECIDED} ({describe_undecided(measured)})")
    if not replicon < 1:
        doubts.append(f"replica symmetry is unstable (replicon {replicon:.3f} >= 1)")
    affected = ["train_loss"] + [name for name in ("theta", "m") if np.any(getattr(overlaps, name))]
    moved = {name: changes[name] for name in affected if not changes[name] < LARGEST_MODEL_ERROR}
    if moved:
        percentages = ", ".join(f"{name} by about {share:.1%}" for name, share in moved.items())
        doubts.append(
            f"breaking replica symmetry would change {percentages} "
            f"(limit {LARGEST_MODEL_ERROR:.0%})"
        )
    reason = "; ".join(doubts) or "a minimum, and breaking replica symmetry changes less than 1%"
    return Stability(
        replicon,
        jump_weight,
        not doubts,
        reason,
        measured.kind,
        tuple(measured.towards),
        measured.value,
        measured.stderr,
    )


def describe_undecided(measured: Multipliers) -> str:
    """The multipliers that are one within their errors."""
    parts = [
        _describe_multiplier(name, measured.value[name], measured.stderr[name])
        for name in measured.undecided
    ]
    return ", ".join(parts) or "no multipliers"


def _describe_multiplier(name: str, value: float, error: float) -> str:
    if not np.isfinite(value):
        return f"the multiplier of {name} could not be measured"
    uncertainty = f" ± {error:.3f}" if np.isfinite(error) else ", with an unknown error"
    return f"one step multiplies {name} by {value:.3f}{uncertainty}"
