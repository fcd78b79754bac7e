"""Independent coordinates of the overlaps, and the symmetries that pin some of them to zero.

After one step of state evolution ``q_l = sigma_l^2 W``, ``V_l = sigma_l^2 R``,
``theta_l = sigma_l^2 Theta`` and ``m`` lies in the range of the positional Gram matrix.
The solver iterates on the independent numbers (W, R, Theta, mu) with ``m = U mu``. Where
each token has a spectrum of its own there is a W, R and Theta for each.

Flipping the sign of a column of Q changes nothing if S does not see it, and likewise for
Q* and T. A starting point that is left unchanged by such a flip stays so for ever: entries
that the flip would turn around remain zero. Rounding and quadrature break this by a little,
and where the symmetric point is unstable that little grows; the coordinates therefore hold
those entries at zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from dotphase.model import Model
from dotphase.model.symmetry import rotations, sign_flips
from dotphase.numerics.fixed_point import Vector
from dotphase.theory.overlaps import MIN_WEIGHT, Overlaps


@dataclass(frozen=True)
class Coordinates:
    """Maps between `Overlaps` and the vector of independent numbers of one model."""

    model: Model
    basis: Float[np.ndarray, "directions modes"]

    @classmethod
    def of(cls, model: Model) -> Coordinates:
        """Coordinates of a model; `basis` spans the range of its directions' Gram matrix."""
        values, vectors = np.linalg.eigh(np.asarray(model.gram))
        return cls(model, vectors[:, values > 1e-12 * max(values[-1], 1e-300)])

    @cached_property
    def rho(self) -> Float[np.ndarray, "tokens 1 1"]:
        """Mean eigenvalue of each token's covariance."""
        return np.asarray(self.model.rho)[:, None, None]

    @cached_property
    def _groups(self) -> int:
        """Number of different (W, R, Theta): one for all tokens, or one for each."""
        spectrum = self.model.spectrum
        return 1 if spectrum is None or spectrum.shared else self.model.length

    @cached_property
    def _triangle(self) -> tuple[np.ndarray, np.ndarray]:
        return np.triu_indices(self.model.student_rank)

    @cached_property
    def _cuts(self) -> list[int]:
        r, t = self.model.student_rank, self.model.teacher_rank * self._groups
        triangle = r * (r + 1) // 2 * self._groups
        return [triangle, 2 * triangle, 2 * triangle + r * t]

    @property
    def squares(self) -> int:
        """Number of coordinates of W, or of R."""
        return self._cuts[0]

    def pack(self, overlaps: Overlaps) -> Vector:
        """The coordinates of overlaps; leading axes are kept."""
        modes = np.einsum("lk,...lj->...kj", self.basis, overlaps.m)
        lead = modes.shape[:-2]
        signal = self._own(overlaps.theta).reshape(*lead, -1)
        squares = (self.pack_squares(overlaps.q), self.pack_squares(overlaps.V))
        return np.concatenate([*squares, signal, modes.reshape(*lead, -1)], axis=-1)

    def pack_squares(self, squares: Any) -> np.ndarray:
        """The coordinates of symmetric matrices ``X_l = sigma_l^2 X``; leading axes are kept."""
        upper = self._own(squares)[(..., *self._triangle)]
        return upper.reshape(*upper.shape[:-2], -1)

    def unpack_squares(self, upper: Vector) -> Float[np.ndarray, "tokens r r"]:
        """The symmetric matrices with the given coordinates."""
        return np.asarray(self.rho * self._symmetric(upper))

    def _own(self, values: Any) -> np.ndarray:
        each = values / self.rho
        return np.asarray(np.mean(each, axis=-3, keepdims=True) if self._groups == 1 else each)

    def unpack(self, vector: Vector) -> Overlaps:
        """The overlaps with the given coordinates."""
        r = self._rank
        weight, inverse, signal, modes = self._split(vector)
        return Overlaps(
            q=self.unpack_squares(weight),
            m=self.basis @ modes.reshape(-1, r),
            V=self.unpack_squares(inverse),
            theta=self.rho * signal.reshape(self._groups, r, -1),
        )

    @cached_property
    def _rank(self) -> int:
        return self.model.student_rank

    def _split(self, vector: Vector) -> tuple[Vector, Vector, Vector, Vector]:
        first, second, third = self._cuts
        return vector[:first], vector[first:second], vector[second:third], vector[third:]

    def _symmetric(self, upper: Vector) -> Float[np.ndarray, "groups r r"]:
        r = self._rank
        if r == 1:
            return upper.reshape(-1, 1, 1)
        matrix = np.empty((self._groups, r, r))
        row, column = self._triangle
        matrix[:, row, column] = matrix[:, column, row] = upper.reshape(self._groups, -1)
        return matrix

    def scale(self, vector: Vector) -> Vector:
        """Sizes against which a change of each coordinate is measured.

        W and R are measured against themselves; Theta and mu, which may vanish, against
        the size they would have if the student were aligned. A strong ridge drives W itself
        to zero: below `MIN_WEIGHT` there is no student left to measure against.
        """
        weight, inverse, signal, modes = self._split(vector)
        count = self._rank * self._groups
        size_w = max(np.einsum("gii->", self._symmetric(weight)) / count, MIN_WEIGHT)
        size_r = np.einsum("gii->", self._symmetric(inverse)) / count
        field = np.sqrt(size_w * self._mean_rho)
        field = field + (np.abs(modes).max() if modes.size else 0.0)
        counts = [part.size for part in (weight, inverse, signal, modes)]
        return np.repeat([size_w, size_r, np.sqrt(size_w), field], counts)

    def part(self, name: str) -> Bool[np.ndarray, " n"]:
        """Mask of the coordinates of one of the overlaps q, V, theta and m."""
        indices = np.arange(self.basis.shape[1] * self.model.student_rank + self._cuts[-1])
        which = np.searchsorted(self._cuts, indices, side="right")
        return np.asarray(which == ("q", "V", "theta", "m").index(name))

    @cached_property
    def directions(self) -> Overlaps:
        """The overlaps along each coordinate but those of V, on a leading axis."""
        units = np.eye(self.part("V").size)[~self.part("V")]
        return Overlaps(*map(np.stack, zip(*map(self.unpack, units), strict=True)))

    def parallel_weight_gradient(self, vector: Vector) -> Float[np.ndarray, "q theta+m"]:
        """Derivatives by Theta and mu of the part of W along Q* and the directions.

        With ``A = (Theta, m^T)`` and the Gram matrix G of Q*/sqrt d and the directions that part is
        ``A G^{-1} A^T``. It is not known for tokens
        with a spectrum, where the derivatives are set to zero.
        """
        aligned = np.flatnonzero(self.part("theta") | self.part("m"))
        if self.model.spectrum is not None:
            return np.zeros((self.squares, aligned.size))
        overlaps = self.model.teacher_overlaps
        gram = np.block(
            [[np.eye(overlaps.shape[1]), overlaps.T], [overlaps, np.asarray(self.model.gram)]]
        )
        inverse = np.linalg.pinv(gram, hermitian=True)

        def components(coordinates: Vector) -> Float[np.ndarray, "r t+directions"]:
            _, _, signal, modes = self._split(coordinates)
            m = self.basis @ modes.reshape(-1, self._rank)
            return np.concatenate([signal.reshape(self._rank, -1), m.T], axis=1)

        weighted, columns = components(vector) @ inverse, []
        for unit in np.eye(vector.size)[aligned]:
            half = weighted @ components(unit).T
            columns.append((half + half.T)[self._triangle])
        return np.asarray(columns).reshape(aligned.size, -1).T

    def rotations(self, vector: Vector) -> Float[np.ndarray, "rotations n"]:
        """Changes of the coordinates under rotations of columns that leave the model unchanged."""
        model = self.model
        q, m, V, theta = self.unpack(vector)
        changes = []
        of_student, of_teacher = rotations(model)
        for a in of_student:
            changes.append(Overlaps(a.T @ q + q @ a, m @ a, a.T @ V + V @ a, a.T @ theta))
        for a in of_teacher:
            changes.append(Overlaps(0 * q, 0 * m, 0 * V, theta @ a))
        return np.asarray([self.pack(change) for change in changes]).reshape(-1, vector.size)

    @cached_property
    def _mean_rho(self) -> float:
        return float(self.rho.mean())

    def fixed_at_zero(self, initial: Vector) -> Bool[np.ndarray, " n"]:
        """Coordinates that a symmetry of the model and of `initial` fixes at zero."""
        return np.any([signs < 0 for signs in self._symmetries(initial)], axis=0)

    def sectors(self, vector: Vector) -> list[Bool[np.ndarray, " n"]]:
        """Groups of coordinates with the same signs under all symmetries of `vector`.

        Small changes in different groups do not mix. The free coordinates are one group.
        """
        signs = np.asarray(self._symmetries(vector))
        _, number = np.unique(signs, axis=1, return_inverse=True)
        return [np.ravel(number) == k for k in range(np.max(number) + 1)]

    def _symmetries(self, vector: Vector) -> list[Vector]:
        """The sign flips that leave a vector unchanged, the identity among them."""
        return [signs for signs in self._flips() if np.array_equal(signs * vector, vector)]

    def _flips(self) -> list[Vector]:
        """Signs of the coordinates under each flip of columns that leaves the model unchanged."""
        row, column = self._triangle
        flips = []
        for s, u in sign_flips(self.model):
            square = np.tile(s[row] * s[column], self._groups)
            signal = np.tile(np.outer(s, u).ravel(), self._groups)
            modes = np.tile(s, self.basis.shape[1])
            flips.append(np.concatenate([square, square, signal, modes]))
        return flips
