"""Results of one step of replica symmetry breaking."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from dotphase.config.formatting import LABELS, Description, format_value
from dotphase.config.serialization import fields_except
from dotphase.storage.results import Result
from dotphase.theory.model_error import LAWS
from dotphase.theory.one_rsb.parisi_path import Path
from dotphase.theory.one_rsb.state_evolution import BrokenOverlaps
from dotphase.theory.overlaps import DIMENSIONS, norms_of
from dotphase.theory.quadrature_error import standard_error
from dotphase.theory.solution import Solution


@dataclass(frozen=True, eq=False, repr=False)
class Complexity(Result):
    """Minima of a branch counted: the complexity along the Parisi parameter.

    Attributes
    ----------
    model, alpha, branch : of what
    parisi : values of y
    complexity : ``y^2 dF/dy``, the log per dimension of how many minima there are
    energy : their training loss, ``d(y F)/dy``
    free_energy : F(y); its maximum is the lowest training loss
    stderr : of the complexity and of F less its value at y = 0
    norms : sizes of the overlaps of token 1 along y

    Examples
    --------
    >>> curve = dp.analysis.complexity(
    ...     dp.positional_semantic(omega=0.1), 0.75, "positional", inner=9, log2_points=12
    ... )
    >>> bool(curve.complexity[1] > 0)
    True
    """

    model: Any = field(repr=False)
    alpha: float
    branch: str
    parisi: Float[np.ndarray, " nodes"]
    complexity: Float[np.ndarray, " nodes"]
    energy: Float[np.ndarray, " nodes"]
    free_energy: Float[np.ndarray, " nodes"]
    stderr: dict[str, Float[np.ndarray, " nodes"]]
    norms: dict[str, Float[np.ndarray, " nodes"]]


def complexity_of(symmetric: Solution, path: Path) -> Complexity:
    """The complexity at the nodes of a path."""
    slope = path.slope
    free = symmetric.free_energy + path.gain_at(path.y)
    names = path.nodes[0].norms
    return Complexity(
        model=symmetric.model,
        alpha=symmetric.alpha,
        branch=symmetric.branch,
        parisi=path.y,
        complexity=path.y**2 * slope,
        energy=free + path.y * slope,
        free_energy=free,
        stderr={
            "complexity": np.asarray(
                [standard_error(column) for column in (path.y**2 * path.slopes).T]
            ),
            "free_energy": path.gain_stderr,
        },
        norms={name: np.asarray([node.norms[name] for node in path.nodes]) for name in names},
    )


@dataclass(frozen=True, eq=False, repr=False)
class Broken(Result):
    """One fixed point with one step of replica symmetry breaking.

    Attributes
    ----------
    symmetric : the replica-symmetric solution it belongs to
    overlaps : order parameters per token
    parisi : y where dF/dy = 0; NaN where there are no clusters, or F still rises
    parisi_range : between which values F differs from its maximum by less than its error
    complexity : at y; zero within its error if y was found
    train_loss, test_error : of the lowest minima
    shift : what breaking changes: results less the replica-symmetric ones, on common points
    stderr : standard errors of the overlaps, the results and y
    shift_stderr : of the shifts alone
    curve : the complexity on the way; None where there are no clusters
    converged : whether all of it was found
    message : what was found
    log2_points, inner : outer points (log2), and inner points for each of them
    iterations, seconds : evaluations of the map, and wall time

    Examples
    --------
    >>> model = dp.positional_semantic(omega=0.1)
    >>> broken = dp.solve(model, 0.75, "positional", breaking=1, inner=9, log2_points=12)
    >>> broken.train_loss > broken.symmetric.train_loss
    True
    """

    dimensions: ClassVar = DIMENSIONS | {"q0": DIMENSIONS["q"], "q1": DIMENSIONS["q"]}

    symmetric: Solution = field(repr=False)
    overlaps: BrokenOverlaps
    parisi: float
    parisi_range: tuple[float, float]
    complexity: float
    train_loss: float
    test_error: float
    shift: dict[str, float]
    stderr: dict[str, float]
    shift_stderr: dict[str, float]
    curve: Complexity | None = field(repr=False)
    converged: bool
    message: str
    log2_points: int
    inner: int
    iterations: int
    seconds: float

    @property
    def on_branch(self) -> bool:
        """True if the requested branch was found and the solver converged on it."""
        return self.converged and self.symmetric.on_branch

    @property
    def norms(self) -> dict[str, float]:
        """Sizes of the overlaps of token 1."""
        return norms_of(self.overlaps)

    def to_dict(self) -> dict[str, Any]:
        """The solution as plain numbers, lists and strings, ready for JSON."""
        parts = {name: np.asarray(part).tolist() for name, part in self.overlaps._asdict().items()}
        parts.pop("parisi")
        symmetric = self.symmetric.to_dict()
        return {
            **{name: symmetric[name] for name in ("alpha", "branch", "found")},
            **fields_except(self, "overlaps", "symmetric", "curve"),
            "parisi": self.parisi if math.isfinite(self.parisi) else None,
            "parisi_range": list(self.parisi_range),
            "overlaps": parts,
            "norms": self.norms,
            "model_error": {name: abs(self.shift[name]) for name in LAWS},
            "symmetric": symmetric,
        }

    @property
    def description(self) -> Description:
        """The results, and what breaking has changed."""
        symmetric = self.symmetric
        head = f"{symmetric.found} branch at alpha = {symmetric.alpha:g}, one step of breaking"
        if not self.converged:
            head = f"NO RESULT for the {symmetric.branch} branch at alpha = {symmetric.alpha:g}"
        labels = {**LABELS, "parisi": "y"}
        results = {
            **self.norms,
            "train_loss": self.train_loss,
            "test_error": self.test_error,
            "parisi": self.parisi,
            "complexity": self.complexity,
        }
        rows = []
        for name, value in results.items():
            note = ""
            if name in self.shift:
                moved = format_value(self.shift[name], self.shift_stderr[name])
                note = f"   from replica symmetry {moved}"
            shown = format_value(value, self.stderr[name]) if math.isfinite(value) else "none"
            rows.append((labels.get(name, name), shown + note))
        state = "converged" if self.converged else "NOT CONVERGED"
        end = (
            f"{state}: {self.message}; {self.iterations} iterations, "
            f"2^{self.log2_points} points with {self.inner} inner ones each"
        )
        return Description(head, tuple(rows), (end,))
